"""What each task's groups scored lately.

State with its owner: `record_group` changes it, `stats` reads it, `state_dict` and
`load_state_dict` save it. It decides nothing.
"""

from __future__ import annotations

import statistics
from collections import deque
from typing import Any

HISTORY_GROUPS = 10
"""Group means kept per task. Source: atropos 296a0bc, curriculum; differs: none."""

RECENT_GROUPS = 5
"""Of these, how many newest count as recent."""


class TaskProgress:
    """The newest group means and the number of groups, by task.

    Attributes:
        history: Task to its newest group means, each in [0, 1], oldest first, at most
            `HISTORY_GROUPS`.
        group_counts: Task to the number of groups scored since the run began.
    """

    def __init__(self) -> None:
        self.history: dict[str, deque[float]] = {}
        self.group_counts: dict[str, int] = {}

    def record_group(self, task: str, mean_score: float) -> None:
        """Add one scored group of a task; `mean_score` is in [0, 1]."""
        kept = self.history.setdefault(task, deque(maxlen=HISTORY_GROUPS))
        kept.append(mean_score)
        self.group_counts[task] = self.group_counts.get(task, 0) + 1

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
            "group_counts": dict(self.group_counts),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state.

        Raises:
            ValueError: A field is missing or has another form; nothing was changed.
        """
        try:
            history = {
                str(task): deque((float(v) for v in kept), maxlen=HISTORY_GROUPS)
                for task, kept in state["history"].items()
            }
            counts = {str(task): int(n) for task, n in state["group_counts"].items()}
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"progress needs `history` and `group_counts`, by task ({error!r})"
            ) from error
        self.history, self.group_counts = history, counts
