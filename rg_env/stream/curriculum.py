"""Per-task levels that follow results: harder when a task is too easy, and back.

The law, for each task after each of its groups:

- Only groups made within `NEAR` of the level now in force count, at least `MIN_GROUPS`
  of them, the `RECENT_GROUPS` newest. What they scored is carried over to that level:
  a learner is expected to lose `SLOPE` of accuracy per unit of level.
- Within `BAND` of the target nothing moves. Otherwise the level moves by `STEP`, or by
  `FAST_STEP` where results are stable and the level plainly too easy or too hard, both
  times the stability: 1 - standard deviation of the counted means, at least 0.5.
- Once a task had to turn round, its steps are at most `GAIN` times the distance from
  the target.

Reasons for the differences from the original:

- With steps of one size, a level settles at the median of the groups' scores, not the
  mean, up to 0.2 away from the target where a level mixes groups of two accuracies.
- Results arrive late and belong to an earlier level. If they counted for the current
  level, each group in flight would move it again.

docs/measurements.md says how simulated learners fare with it.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Annotated, Any, Literal

import msgspec

START = 0.3
BAND = 0.05  # half the width of the range of accuracies that is left alone
MIN_GROUPS = 3
STEP = 0.05
FAST_STEP = 0.1
MIN_FACTOR = 0.5
STABLE_FACTOR = 0.8
EASY, HARD = 0.9, 0.3
MIDDLE = 0.5
HISTORY_GROUPS = 10  # whose means are kept
RECENT_GROUPS = 5
"""Source of the above: atropos 296a0bc, curriculum; differs: none."""

NEAR = 0.15  # how far from the level in force a group may have been made to count
SLOPE = 2.5  # accuracy that a learner is taken to lose per unit of level
GAIN = 0.2  # largest step per distance from the target, after a turn
ROUNDING = 1e-9

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Count = Annotated[int, msgspec.Meta(ge=0)]


class TaskHistory(msgspec.Struct):
    """What the groups of each task scored lately, and at which level."""

    history: dict[str, list[Share]]  # the newest group means, oldest first
    level_history: dict[str, list[Share | None]]  # of the same groups; None for none
    group_counts: dict[str, Count]  # groups since the run began
    variance_counts: dict[str, Count]  # of these, not all scores equal

    def record_group(
        self,
        task: str,
        mean_score: float,
        level: float | None = None,
        has_variance: bool = True,
    ) -> None:
        """Add one scored group of a task; the level is that of its item."""
        means, levels = self.history.get(task, []), self.level_history.get(task, [])
        self.history[task] = [*means, mean_score][-HISTORY_GROUPS:]
        self.level_history[task] = [*levels, level][-HISTORY_GROUPS:]
        self.group_counts[task] = self.group_counts.get(task, 0) + 1
        before = self.variance_counts.get(task, 0)
        self.variance_counts[task] = before + bool(has_variance)

    def results(self, task: str) -> list[tuple[float, float | None]]:
        """Return the kept means of a task with their levels, oldest first."""
        return list(zip(self.history[task], self.level_history[task], strict=False))

    def recent_accuracy(self, task: str) -> float | None:
        """Return the mean of the task's newest groups, None before the first one."""
        recent = self.history.get(task, [])[-RECENT_GROUPS:]
        return statistics.fmean(recent) if recent else None

    def stats(self) -> dict[str, Any]:
        """Return the number of tasks seen and the mean of their recent accuracies."""
        recent = [statistics.fmean(m[-RECENT_GROUPS:]) for m in self.history.values()]
        return {
            "total_tasks_tracked": len(recent),
            "avg_recent_accuracy": statistics.fmean(recent) if recent else 0.0,
        }

    def state_dict(self) -> dict[str, Any]:
        """Return the state as plain values."""
        state: dict[str, Any] = msgspec.to_builtins(self)
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over a state; ValueError, and no change, if it has another form."""
        loaded = msgspec.convert(state, TaskHistory)
        for name in self.__struct_fields__:
            setattr(self, name, getattr(loaded, name))


@dataclasses.dataclass(frozen=True)
class LevelChange:
    """A level that moved; the accuracy, in [0, 1], is carried over to the old one."""

    task: str
    old: float
    new: float
    accuracy: float
    groups: int

    def __str__(self) -> str:
        """Return the line of the log."""
        return (
            f"level of {self.task}: {self.old:.2f} -> {self.new:.2f}"
            f" (accuracy {self.accuracy:.2f} over {self.groups} groups)"
        )


class _TaskState(msgspec.Struct):
    level: Share
    direction: Literal[-1, 0, 1] = 0  # of the last step
    turned: bool = False  # whether a step went against the one before it
    # Groups that came before the level was set; None where none has come since.
    counted_from: Count | None = 0


class _CurriculumState(msgspec.Struct):
    tasks: dict[str, _TaskState]


class Curriculum(MutableMapping[str, float]):
    """Task to level, of the tasks seen or set, and the law that moves the levels.

    A level that is written may lie outside the task's bounds; results then move it
    towards them only, and those that came before no longer count. Deleting a task sends
    it back to the start. The target is the accuracy to hold, in [0, 1].
    """

    def __init__(self, target: float) -> None:
        self._target = target
        self._bounds: Mapping[str, tuple[float, float]] = {}
        self._tasks: dict[str, _TaskState] = {}

    def limit(self, bounds: Mapping[str, tuple[float, float]]) -> None:
        """Set the lowest and the highest level of each task."""
        self._bounds = bounds

    def start_of(self, task: str) -> float:
        """Return a task's level before its first change."""
        low, high = self._bounds.get(task, (0.0, 1.0))
        return min(max(START, low), high)

    def level_of(self, task: str) -> float:
        """Return the level for a task's next item, in [0, 1]."""
        state = self._tasks.get(task)
        return self.start_of(task) if state is None else state.level

    def __getitem__(self, task: str) -> float:
        return self._tasks[task].level

    def __setitem__(self, task: str, level: float) -> None:
        if not 0 <= level <= 1:
            raise ValueError(f"{task}: a level lies in [0, 1], found {level!r}")
        self._tasks[task] = _TaskState(float(level), counted_from=None)

    def __delitem__(self, task: str) -> None:
        del self._tasks[task]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tasks)

    def __len__(self) -> int:
        return len(self._tasks)

    def __repr__(self) -> str:
        return repr(dict(self))

    def follow(self, task: str, progress: TaskHistory) -> LevelChange | None:
        """Move a task's level by its results; call it after each `record_group`."""
        state = self._tasks.setdefault(task, _TaskState(self.start_of(task)))
        counted = self._counted(task, state, progress)
        if not counted:
            return None
        accuracy = statistics.fmean(
            mean - SLOPE * (state.level - level) for mean, level in counted
        )
        distance = accuracy - self._target
        if len(counted) < MIN_GROUPS or abs(distance) <= BAND + ROUNDING:
            return None
        direction: Literal[-1, 1] = 1 if distance > 0 else -1
        # Once it has overshot, the level is near: steps follow the distance.
        state.turned |= direction == -state.direction
        state.direction = direction
        factor = max(MIN_FACTOR, 1 - statistics.stdev(mean for mean, _ in counted))
        is_too_easy = direction > 0 and accuracy > EASY and state.level < MIDDLE
        is_too_hard = direction < 0 and accuracy < HARD and state.level > MIDDLE
        is_far = (is_too_easy or is_too_hard) and factor > STABLE_FACTOR
        step = factor * (FAST_STEP if is_far else STEP)
        if state.turned:
            step = min(step, GAIN * abs(distance))
        old = state.level
        # A level that was set outside of the bounds is not pulled in at once.
        low, high = self._bounds.get(task, (0.0, 1.0))
        low, high = min(low, old), max(high, old)
        state.level = min(max(old + direction * step, low), high)
        if state.level == old:
            return None
        accuracy = min(max(accuracy, 0.0), 1.0)
        return LevelChange(task, old, state.level, accuracy, len(counted))

    def _counted(
        self, task: str, state: _TaskState, progress: TaskHistory
    ) -> list[tuple[float, float]]:
        """Return the means that decide with their levels, oldest first."""
        count = progress.group_counts[task]
        if state.counted_from is None:
            state.counted_from = max(0, count - 1)
        results = progress.results(task)
        newer = results[max(0, len(results) - (count - state.counted_from)) :]
        near = [
            (mean, level)
            for mean, level in newer
            if level is not None and abs(level - state.level) <= NEAR + ROUNDING
        ]
        return near[-RECENT_GROUPS:]

    def stats(self) -> dict[str, Any]:
        """Return the curriculum in figures; before the first group, of the start."""
        levels = list(self.values()) or [START]
        return {
            "tasks_with_adjustments": sum(self.start_of(t) != self[t] for t in self),
            "target_accuracy": self._target,
            "avg_complexity": statistics.fmean(levels),
            "min_complexity": min(levels),
            "max_complexity": max(levels),
        }

    def state_dict(self) -> dict[str, Any]:
        """Return the state as plain values; target and bounds are settings."""
        return {"tasks": msgspec.to_builtins(self._tasks)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over a state; ValueError, and no change, if it has another form."""
        self._tasks = msgspec.convert(state, _CurriculumState).tasks
