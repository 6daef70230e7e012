"""What each task's groups scored lately, and at which level.

State with its owner: `record_group` changes it, `results` and `stats` read it,
`state_dict` and `load_state_dict` save it. It decides nothing.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections import deque
from collections.abc import Iterable
from typing import Annotated, Any

import msgspec

HISTORY_GROUPS = 10
"""Group means kept per task. Source: atropos 296a0bc, curriculum; differs: none."""

RECENT_GROUPS = 5
"""So many of the newest groups count as recent."""


Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Count = Annotated[int, msgspec.Meta(ge=0)]


class _HistoryState(msgspec.Struct):
    history: dict[str, list[Share]]
    level_history: dict[str, list[Share | None]]
    group_counts: dict[str, Count]
    variance_counts: dict[str, Count]


@dataclasses.dataclass(frozen=True)
class GroupResult:
    """What one group scored, and its item's level, None where none made it."""

    mean_score: float
    level: float | None


class TaskHistory:
    """The newest group means with their levels, and the number of groups, by task.

    Attributes:
        history: Task to its newest group means, each in [0, 1], oldest first, at most
            `HISTORY_GROUPS`.
        level_history: Task to the levels of the same groups, in the same order.
        group_counts: Task to the number of groups scored since the run began.
        variance_counts: Task to the number of these whose scores were not all equal.
    """

    def __init__(self) -> None:
        self.history: dict[str, deque[float]] = {}
        self.level_history: dict[str, deque[float | None]] = {}
        self.group_counts: dict[str, int] = {}
        self.variance_counts: dict[str, int] = {}

    def record_group(
        self,
        task: str,
        mean_score: float,
        level: float | None = None,
        has_variance: bool = True,
    ) -> None:
        """Add one scored group of a task; the level is that of its item."""
        self.history.setdefault(task, _newest()).append(mean_score)
        self.level_history.setdefault(task, _newest()).append(level)
        self.group_counts[task] = self.group_counts.get(task, 0) + 1
        before = self.variance_counts.get(task, 0)
        self.variance_counts[task] = before + bool(has_variance)

    def results(self, task: str) -> list[GroupResult]:
        """Return the kept results of a task, oldest first; empty before the first."""
        kept = (self.history.get(task, ()), self.level_history.get(task, ()))
        return [GroupResult(*pair) for pair in zip(*kept, strict=False)]

    def recent_accuracy(self, task: str) -> float | None:
        """Return the mean of the task's newest groups, None before the first one."""
        recent = list(self.history.get(task, ()))[-RECENT_GROUPS:]
        return statistics.fmean(recent) if recent else None

    def stats(self) -> dict[str, Any]:
        """Return the number of tasks seen and the mean of their recent accuracies."""
        recent = [self.recent_accuracy(task) for task in self.history]
        known = [value for value in recent if value is not None]
        return {
            "total_tasks_tracked": len(self.history),
            "avg_recent_accuracy": statistics.fmean(known) if known else 0.0,
        }

    def state_dict(self) -> dict[str, Any]:
        """Return the state as plain values."""
        return {
            "history": {task: list(kept) for task, kept in self.history.items()},
            "level_history": {t: list(kept) for t, kept in self.level_history.items()},
            "group_counts": dict(self.group_counts),
            "variance_counts": dict(self.variance_counts),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state; ValueError, and no change, if it has another form."""
        loaded = msgspec.convert(state, _HistoryState)
        both = loaded.history, loaded.level_history
        means, levels = ({t: len(kept) for t, kept in h.items()} for h in both)
        if means != levels:
            raise ValueError("there are not as many levels as means")
        self.history = {t: _newest(kept) for t, kept in loaded.history.items()}
        self.level_history = {
            t: _newest(kept) for t, kept in loaded.level_history.items()
        }
        self.group_counts = loaded.group_counts
        self.variance_counts = loaded.variance_counts


def _newest(values: Iterable[Any] = ()) -> deque[Any]:
    return deque(values, maxlen=HISTORY_GROUPS)
