"""What each task's groups scored lately, and at which level.

State with its owner: `record_group` changes it, `results` and `stats` read it,
`state_dict` and `load_state_dict` save it. It decides nothing.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

HISTORY_GROUPS = 10
"""Group means kept per task. Source: atropos 296a0bc, curriculum; differs: none."""

RECENT_GROUPS = 5
"""Of these, how many newest count as recent."""


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
        """Add one scored group of a task.

        The level is that of its item, None if none made it; a group without variance
        teaches a trainer nothing.
        """
        self.history.setdefault(task, _newest()).append(mean_score)
        self.level_history.setdefault(task, _newest()).append(level)
        self.group_counts[task] = self.group_counts.get(task, 0) + 1
        self.variance_counts[task] = self.variance_counts.get(task, 0) + bool(
            has_variance
        )

    def results(self, task: str) -> list[GroupResult]:
        """Return the kept results of a task, oldest first; empty before the first."""
        pairs = zip(
            self.history.get(task, ()), self.level_history.get(task, ()), strict=False
        )
        return [GroupResult(mean, level) for mean, level in pairs]

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
            "level_history": {
                task: list(kept) for task, kept in self.level_history.items()
            },
            "group_counts": dict(self.group_counts),
            "variance_counts": dict(self.variance_counts),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state; ValueError, and no change, if it has another form."""
        try:
            history = _loaded_results(state["history"])
            levels = _loaded_results(state["level_history"], or_none=True)
            counts = _loaded_counts(state["group_counts"])
            signals = _loaded_counts(state["variance_counts"])
            if {t: len(kept) for t, kept in history.items()} != {
                t: len(kept) for t, kept in levels.items()
            }:
                raise ValueError("there are not as many levels as means")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                "progress needs `history`, `level_history`, `group_counts` and"
                f" `variance_counts`, by task ({error!r})"
            ) from error
        self.history, self.level_history = history, levels
        self.group_counts, self.variance_counts = counts, signals


def _newest(values: Iterable[Any] = ()) -> deque[Any]:
    return deque(values, maxlen=HISTORY_GROUPS)


def _loaded_results(
    kept: Mapping[str, Iterable[Any]], or_none: bool = False
) -> dict[str, deque[Any]]:
    loaded = {str(task): _newest(values) for task, values in kept.items()}
    for task, values in loaded.items():
        for value in values:
            if or_none and value is None:
                continue
            if type(value) not in (int, float) or not 0 <= value <= 1:
                raise ValueError(f"{task}: a number from 0 to 1, found {value!r}")
    return loaded


def _loaded_counts(counts: Mapping[str, Any]) -> dict[str, int]:
    for task, count in counts.items():
        if type(count) is not int or count < 0:
            raise ValueError(f"{task}: a number of groups, found {count!r}")
    return dict(counts)
