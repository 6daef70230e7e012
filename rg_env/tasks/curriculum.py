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

- With steps of one size, a level settles where as many groups are above the target as
  below it. That is the median, not the mean: a level between two steps mixes groups of
  two accuracies, and simulated learners were held up to 0.2 away from the target. If
  steps are proportional to the distance, the mean of many groups must approach the
  target.
- Results arrive late and belong to an earlier level. If they counted for the current
  level, each group in flight would move it again. With the carry-over, they stop moving
  the level as soon as it is where they predict the target to be.

docs/measurements.md says how simulated learners fare with it. A learner that loses
more than twice `SLOPE` per unit of level still swings when many groups of one task
are in flight; it is held with up to a few.

Pure but for its own state.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Collection, Iterator, Mapping, MutableMapping, Sequence
from typing import Any, Literal

import msgspec

from rg_env.errors import SettingError, unknown_name
from rg_env.tasks.task_history import (
    RECENT_GROUPS,
    Count,
    GroupResult,
    Share,
    TaskHistory,
)

START = 0.3
BAND = 0.05
"""Half the width of the range of accuracies that is left alone."""

MIN_GROUPS = 3
STEP = 0.05
FAST_STEP = 0.1
MIN_FACTOR = 0.5
STABLE_FACTOR = 0.8
EASY, HARD = 0.9, 0.3
MIDDLE = 0.5
"""Source of the above: atropos 296a0bc, curriculum; differs: none."""

NEAR = 0.15
"""How far from the level in force a group may have been made to count."""

SLOPE = 2.5
"""Accuracy that a learner is taken to lose per unit of level."""

GAIN = 0.2
"""Largest step per distance from the target, once a task had to turn round."""

ROUNDING = 1e-9

FIELD = "task_complexity_levels"
"""What the environment calls `Curriculum.levels`."""

Bound = Literal["too_easy", "too_hard"]


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


class _TaskState(msgspec.Struct, forbid_unknown_fields=True):
    level: Share
    accuracy: Share | None = None  # expected at this level by the newest results
    groups: Count = 0  # that it rests on
    direction: Literal[-1, 0, 1] = 0  # of the last step
    turned: bool = False  # whether a step went against the one before it
    # Groups that came before the level was set; None where none has come since.
    counted_from: Count | None = 0


class _CurriculumState(msgspec.Struct):
    tasks: dict[str, _TaskState]


class Levels(MutableMapping[str, float]):
    """Task to level, as one mapping that can be written from outside.

    Writing is `Curriculum.set_level`, also before the tasks are known; deleting a task
    sends it back to the start.
    """

    def __init__(self, curriculum: Curriculum) -> None:
        self._curriculum = curriculum

    def __getitem__(self, task: str) -> float:
        return self._curriculum._tasks[task].level

    def __setitem__(self, task: str, level: float) -> None:
        self._curriculum.set_level(task, level)

    def __delitem__(self, task: str) -> None:
        del self._curriculum._tasks[task]

    def __iter__(self) -> Iterator[str]:
        return iter(self._curriculum._tasks)

    def __len__(self) -> int:
        return len(self._curriculum._tasks)

    def __repr__(self) -> str:
        return repr(dict(self))

    def copy(self) -> dict[str, float]:
        """Return the levels as they are now, as a plain dict."""
        return dict(self)


class Curriculum:
    """The levels of all tasks and the law that moves them.

    Args:
        target: Accuracy to hold, in [0, 1].
        bounds: Task to its lowest and highest level; [0, 1] where not given.
        start: Level of a task before its first change, clamped to its bounds.

    Attributes:
        levels: Task to level, of those seen or set; can be written.

    Raises:
        ValueError: A number is out of [0, 1] or a task's bounds are no range.
    """

    def __init__(
        self,
        target: float,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        start: float = START,
    ) -> None:
        self._target = _fraction("target", target)
        self._start = _fraction("start", start)
        self._bounds = _checked_bounds(bounds or {})
        self._unscaled: dict[str, str] | None = None
        self._tasks: dict[str, _TaskState] = {}
        self.levels: MutableMapping[str, float] = Levels(self)

    def limit(
        self, bounds: Mapping[str, tuple[float, float]], unscaled: Mapping[str, str]
    ) -> None:
        """Say which tasks there are, once they are known; others are rejected then.

        Tasks whose items a level changes are in `bounds`, with lowest and highest, and
        all others in `unscaled`, with the reason why none does.

        Raises:
            SettingError: A level was set for a task that is not in `bounds`.
            ValueError: A task's bounds are no range. Nothing was changed.
        """
        checked = _checked_bounds(bounds)
        for task in self._tasks:
            _refuse_unless_known(task, checked, unscaled)
        self._bounds, self._unscaled = checked, dict(unscaled)

    def bounds_of(self, task: str) -> tuple[float, float]:
        """Return a task's lowest and highest level."""
        return self._bounds.get(task, (0.0, 1.0))

    def start_of(self, task: str) -> float:
        """Return a task's level before its first change."""
        low, high = self.bounds_of(task)
        return min(max(self._start, low), high)

    def level_of(self, task: str) -> float:
        """Return the level for a task's next item, in [0, 1]."""
        state = self._tasks.get(task)
        return self.start_of(task) if state is None else state.level

    def set_level(self, task: str, level: float) -> None:
        """Put a task at a level; results that came before no longer count.

        It may lie outside the task's bounds: results then move it towards them only.

        Raises:
            SettingError: The task does not exist or no level changes its items.
            ValueError: The level is out of [0, 1].
        """
        if self._unscaled is not None:
            _refuse_unless_known(task, self._bounds, self._unscaled)
        level = _fraction(f"{FIELD}.{task}", level)
        self._tasks[task] = _TaskState(level, counted_from=None)

    def update(self, task: str, progress: TaskHistory) -> LevelChange | None:
        """Move a task's level by its results; call it after each `record_group`."""
        state = self._tasks.setdefault(task, _TaskState(self.start_of(task)))
        counted = self._counted(task, state, progress)
        if not counted:
            return None
        means = [result.mean_score for result in counted]
        accuracy = _carried_over(counted, state.level)
        state.accuracy, state.groups = min(max(accuracy, 0.0), 1.0), len(counted)
        distance = accuracy - self._target
        if len(counted) < MIN_GROUPS or abs(distance) <= BAND + ROUNDING:
            return None
        direction: Literal[-1, 1] = 1 if distance > 0 else -1
        # Once it has overshot, the level is near: steps follow the distance.
        state.turned |= direction == -state.direction
        state.direction = direction
        step = _full_step(means, accuracy, state.level, direction)
        if state.turned:
            step = min(step, GAIN * abs(distance))
        old = state.level
        state.level = self._moved(task, old, direction * step)
        if state.level == old:
            return None
        return LevelChange(task, old, state.level, state.accuracy, len(counted))

    def at_bound(self, task: str) -> Bound | None:
        """Return why no level of a task brings the target, None if one may."""
        state = self._tasks.get(task)
        if state is None or state.accuracy is None or state.groups < MIN_GROUPS:
            return None
        low, high = self.bounds_of(task)
        if state.level >= high and state.accuracy > self._target + BAND:
            return "too_easy"
        if state.level <= low and state.accuracy < self._target - BAND:
            return "too_hard"
        return None

    def stats(self) -> dict[str, Any]:
        """Return the curriculum in figures; before the first group, of the start."""
        levels = list(self.levels.values()) or [self._start]
        bounds = [self.at_bound(task) for task in self._tasks]
        moved = [self.start_of(t) != state.level for t, state in self._tasks.items()]
        return {
            "tasks_with_adjustments": sum(moved),
            "tasks_too_easy": bounds.count("too_easy"),
            "tasks_too_hard": bounds.count("too_hard"),
            "target_accuracy": self._target,
            "avg_complexity": statistics.fmean(levels),
            "min_complexity": min(levels),
            "max_complexity": max(levels),
        }

    def state_dict(self) -> dict[str, Any]:
        """Return the state as plain values; target, bounds and start are settings."""
        return {"tasks": {t: msgspec.structs.asdict(s) for t, s in self._tasks.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over a state; ValueError, and no change, if it has another form."""
        self._tasks = msgspec.convert(state, _CurriculumState).tasks

    def _moved(self, task: str, level: float, change: float) -> float:
        low, high = self.bounds_of(task)
        # A level that was set outside of the bounds is not pulled in at once.
        low, high = min(low, level), max(high, level)
        return min(max(level + change, low), high)

    def _counted(
        self, task: str, state: _TaskState, progress: TaskHistory
    ) -> list[GroupResult]:
        """Return the results that decide, oldest first."""
        count = progress.group_counts.get(task, 0)
        if state.counted_from is None:
            state.counted_from = max(0, count - 1)
        results = progress.results(task)
        newer = results[max(0, len(results) - (count - state.counted_from)) :]
        limit = NEAR + ROUNDING
        near = [
            result
            for result in newer
            if result.level is not None and abs(result.level - state.level) <= limit
        ]
        return near[-RECENT_GROUPS:]


def _checked_bounds(
    bounds: Mapping[str, tuple[float, float]],
) -> dict[str, tuple[float, float]]:
    for task, (low, high) in bounds.items():
        if not 0 <= low <= high <= 1:
            found = f"found {(low, high)}"
            raise ValueError(f"{task}: bounds are low <= high in [0, 1], {found}")
    return dict(bounds)


def _refuse_unless_known(
    task: str, scaled: Collection[str], unscaled: Mapping[str, str]
) -> None:
    if task in unscaled:
        reason = f"no level changes the items of {task!r} ({unscaled[task]})"
        raise SettingError(reason, FIELD)
    if task not in scaled:
        raise unknown_name(FIELD, task, [*scaled, *unscaled], "task")


def _fraction(name: str, value: Any) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= 1:
        raise ValueError(f"{name}: a number from 0 to 1, found {value!r}")
    return float(value)


def _carried_over(results: Sequence[GroupResult], level: float) -> float:
    """Return the accuracy that results, each with its level, promise at a level."""
    return statistics.fmean(
        result.mean_score - SLOPE * (level - (result.level or 0.0))
        for result in results
    )


def _full_step(
    means: Sequence[float], accuracy: float, level: float, direction: int
) -> float:
    """Return the size of a step far from the target, in (0, FAST_STEP]."""
    factor: float = max(MIN_FACTOR, 1 - statistics.stdev(means))
    is_too_easy = direction > 0 and accuracy > EASY and level < MIDDLE
    is_too_hard = direction < 0 and accuracy < HARD and level > MIDDLE
    is_far = is_too_easy or is_too_hard
    return factor * (FAST_STEP if is_far and factor > STABLE_FACTOR else STEP)
