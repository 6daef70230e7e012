"""The effect of results on a run: the levels of its tasks and how often each is drawn.

A group whose scores are all equal teaches a trainer nothing. With adaptive weights,
each task has an estimate of the fraction of its groups that have reward variance, and
its weight is that of the settings times

    floor + (1 - floor) * estimate

The estimate begins at 1, and each group replaces half of it. In a simulation of a
learner that improves (docs/measurements.md), a longer memory kept sampling tasks that
were never or always solved, and a much shorter one abandoned tasks with variance too
early. Because of the floor, renewed variance is noticed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from rg_env.stream.curriculum import (
    MIN_GROUPS,
    Curriculum,
    LevelChange,
    Share,
    TaskHistory,
)
from rg_env.stream.difficulty import Difficulty

FLOOR = 0.03
"""The share of its weight that a task without any signal keeps, by default."""

MEMORY = 0.5
"""What one group leaves of the estimate before it."""


class WeightsState(msgspec.Struct):
    """The estimate of each task."""

    signal: dict[str, Share]


class AdaptiveWeights:
    """What the weights of tasks are multiplied by; the floor is in (0, 1]."""

    def __init__(self, tasks: Iterable[str], floor: float = FLOOR) -> None:
        self._floor = floor
        self._signal = dict.fromkeys(tasks, 1.0)

    def record(self, task: str, has_variance: bool) -> None:
        """Add one group of a task."""
        self._signal[task] = MEMORY * self._signal[task] + (1 - MEMORY) * has_variance

    def weight_of(self, task: str) -> float:
        """Return the factor of a task, in [floor, 1]; 1 for one that is not chosen."""
        return self._floor + (1 - self._floor) * self._signal.get(task, 1.0)

    def state_dict(self) -> dict[str, Any]:
        """Return the state as plain values."""
        return {"signal": dict(self._signal)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over a state; ValueError, and no change, if it has another form."""
        self._signal |= msgspec.convert(state, WeightsState).signal


class Feedback:
    """The way from scored groups to levels and weights."""

    def __init__(self, target_accuracy: float) -> None:
        self.progress = TaskHistory({}, {}, {}, {})
        self.curriculum = Curriculum(target_accuracy)
        self.adaptive: AdaptiveWeights | None = None
        self.changes = 0  # levels moved so far
        self._difficulty: Difficulty | None = None

    def attach(self, difficulty: Difficulty, adaptive: AdaptiveWeights | None) -> None:
        """Begin to move what a run samples, once its tasks are known."""
        self._difficulty = difficulty
        self.adaptive = adaptive

    @property
    def moves_something(self) -> bool:
        """Whether results change any level or weight."""
        levels = self._difficulty
        return self.adaptive is not None or (
            levels is not None and any(map(levels.follows_results, levels.rules))
        )

    def take(
        self, task: str, mean_score: float, level: float | None, has_variance: bool
    ) -> LevelChange | None:
        """Take the result of one group, whose item a level made, or none.

        Returns the change of its task's level, if any.
        """
        self.progress.record_group(task, mean_score, level, has_variance)
        if self._difficulty is None or task not in self._difficulty.rules:
            return None
        if self.adaptive is not None:
            self.adaptive.record(task, has_variance)
        if not self._difficulty.follows_results(task):
            return None
        change = self.curriculum.follow(task, self.progress)
        self.changes += change is not None
        return change

    def stats(self) -> dict[str, Any]:
        """Return the levels and the results in a few numbers."""
        groups = sum(self.progress.group_counts.values())
        signals = sum(self.progress.variance_counts.values())
        return {
            **self.curriculum.stats(),
            **self.progress.stats(),
            "level_changes": self.changes,
            "groups_with_variance": signals / groups if groups else 0.0,
        }

    def details(self) -> dict[str, dict[str, Any]]:
        """Return the level and the results of each task that had a group, by task.

        Source: atropos 296a0bc, get_curriculum_stats(), task_details; differs: the
        accuracy is known from the first group on.
        """
        progress, adaptive = self.progress, self.adaptive
        return {
            task: {
                "complexity": self.curriculum.get(
                    task, progress.level_history[task][-1]
                ),
                "groups_processed": groups,
                "recent_accuracy": progress.recent_accuracy(task),
                "history_length": len(progress.history[task]),
                "adjustable": len(progress.history[task]) >= MIN_GROUPS,
                "groups_with_variance": progress.variance_counts[task] / groups,
                "adaptive_weight": adaptive.weight_of(task) if adaptive else 1.0,
            }
            for task, groups in sorted(progress.group_counts.items())
        }

    def table(self) -> tuple[list[str], list[list[Any]]]:
        """Return columns and rows of a table of the same."""
        details = self.details()
        columns = ["task", *next(iter(details.values()), {})]
        return columns, [[task, *row.values()] for task, row in details.items()]
