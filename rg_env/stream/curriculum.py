"""What results change in a run: the levels of its tasks, and how often each is drawn.

A task's level follows its results, harder when the task is too easy, and back:

- Only groups made within `NEAR` of the level now in force count, at least `MIN_GROUPS`
  of them, the `RECENT_GROUPS` newest. What they scored is carried over to that level:
  a learner is expected to lose `SLOPE` of accuracy per unit of level.
- Within `BAND` of the target nothing moves. Otherwise the level moves by `STEP`, or by
  `FAST_STEP` where results are stable and the level plainly too easy or too hard, both
  times the stability: 1 - standard deviation of the counted means, at least 0.5.
- Once a task had to turn round, its steps are at most `GAIN` times the distance from
  the target.

With adaptive weights, each task has an estimate of the fraction of its groups that have
reward variance, because a group of equal scores teaches a trainer nothing. It begins at
1, and the weight of the task is that of the settings times

    floor + (1 - floor) * estimate

docs/measurements.md says how simulated learners fare with both.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping
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

# How far from the level in force a group may have been made to count: results arrive
# late, and if those of an earlier level counted, each group in flight would move it.
NEAR = 0.15
SLOPE = 2.5  # accuracy that a learner is taken to lose per unit of level
# Largest step per distance from the target, after a turn. With steps of one size, a
# level settles at the median of the groups' scores, not the mean: up to 0.2 away from
# the target where a level mixes groups of two accuracies.
GAIN = 0.2
ROUNDING = 1e-9

# The share of its weight that a task keeps, so that renewed variance is noticed.
FLOOR = 0.03

# What one group leaves of the estimate before it. A longer memory kept sampling tasks
# that were never or always solved, a much shorter one left tasks with variance early.
MEMORY = 0.5

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


class WeightsState(msgspec.Struct):
    """The estimate of each task."""

    signal: dict[str, Share]


class AdaptiveWeights:
    """What the weights of tasks are multiplied by; the floor is in (0, 1]."""

    def __init__(self, tasks: Iterable[str], floor: float = FLOOR) -> None:
        self._floor = floor
        self._signal = dict.fromkeys(tasks, 1.0)

    def record(self, task: str, has_variance: bool) -> None:
        """Add one group of a task, if it is one of those."""
        if task in self._signal:
            new = (1 - MEMORY) * has_variance
            self._signal[task] = MEMORY * self._signal[task] + new

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
        self._moving: Collection[str] = ()

    def attach(self, moving: Collection[str], adaptive: AdaptiveWeights | None) -> None:
        """Begin to move the levels of these tasks and the weights, if there are any."""
        self._moving, self.adaptive = moving, adaptive

    @property
    def moves_something(self) -> bool:
        """Whether results change any level or weight."""
        return bool(self._moving) or self.adaptive is not None

    def take(
        self, task: str, mean_score: float, level: float | None, has_variance: bool
    ) -> LevelChange | None:
        """Take the result of one group, whose item a level made, or none.

        Returns the change of its task's level, if any.
        """
        self.progress.record_group(task, mean_score, level, has_variance)
        if self.adaptive is not None:
            self.adaptive.record(task, has_variance)
        if task not in self._moving:
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

        Counts that a caller has set have no other results beside them.

        Source: atropos 296a0bc, get_curriculum_stats(), task_details; differs: the
        accuracy is known from the first group on.
        """
        progress, adaptive = self.progress, self.adaptive
        return {
            task: {
                "complexity": self.curriculum.get(
                    task, (progress.level_history.get(task) or [None])[-1]
                ),
                "groups_processed": groups,
                "recent_accuracy": progress.recent_accuracy(task),
                "history_length": len(progress.history.get(task, [])),
                "adjustable": len(progress.history.get(task, [])) >= MIN_GROUPS,
                "groups_with_variance": (
                    progress.variance_counts.get(task, 0) / max(1, groups)
                ),
                "adaptive_weight": adaptive.weight_of(task) if adaptive else 1.0,
            }
            for task, groups in sorted(progress.group_counts.items())
        }

    def table(self) -> tuple[list[str], list[list[Any]]]:
        """Return columns and rows of a table of the same."""
        details = self.details()
        columns = ["task", *next(iter(details.values()), {})]
        return columns, [[task, *row.values()] for task, row in details.items()]
