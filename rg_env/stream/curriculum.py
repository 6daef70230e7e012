"""The curriculum: the level of a task follows the scores of its groups.

A task gets harder while it is too easy, and easier while it is too hard:

- Only groups made within `NEAR` of the level now in force count, at least `MIN_GROUPS`
  and at most the `RECENT_GROUPS` newest. Their scores are carried over to that level:
  a learner is expected to lose `SLOPE` of accuracy per unit of level.
- Within `BAND` of the target nothing moves. Otherwise the level moves by `STEP`, or by
  `FAST_STEP` if results are stable and the level is clearly too easy or too hard. Both
  are multiplied by the stability: 1 - standard deviation of the counted means, at least
  `MIN_STABILITY`.
- Once results have asked for a step against the one before it, the steps of the task
  are at most `GAIN` times the distance from the target.

docs/measurements.md has the results of simulated learners with it.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Collection, Iterator, Mapping, MutableMapping, Sequence
from typing import Annotated, Any, Literal

import msgspec

from rg_env.stream.adaptive_weights import AdaptiveWeights, WeightsState

START_LEVEL = 0.3
BAND = 0.05  # largest distance from the target at which the level stays
MIN_GROUPS = 3
STEP = 0.05
FAST_STEP = 0.1
MIN_STABILITY = 0.5
STABLE = 0.8
EASY = 0.9
HARD = 0.3
MIDDLE = 0.5
HISTORY_GROUPS = 10  # newest groups that are kept for each task
RECENT_GROUPS = 5
"""Source of the above: atropos 296a0bc, curriculum; differs: none."""

# Largest distance of a group's level from the level in force at which the group counts:
# results arrive late, and each group in flight would move the level again.
NEAR = 0.15
SLOPE = 2.5  # assumed loss of a learner's accuracy per unit of level
# Largest step per distance from the target, after a change of direction. With steps of
# one size, a level settles at the median of the groups' scores and not at the mean: up
# to 0.2 away from the target if groups of the level have two different accuracies.
GAIN = 0.2
ROUNDING = 1e-9

Count = Annotated[int, msgspec.Meta(ge=0)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class TaskHistory(msgspec.Struct):
    """The newest mean scores of each task's groups, and the levels of their items."""

    history: dict[str, list[Share]]  # the newest group means, oldest first
    level_history: dict[str, list[Share | None]]  # of the same groups; None: no level
    group_counts: dict[str, Count]  # groups since the run began
    variance_counts: dict[str, Count]  # groups with reward variance since then

    def record_group(
        self, task: str, mean_score: float, level: float | None, has_variance: bool
    ) -> None:
        """Add one scored group of a task; the level is that of its item."""
        means = self.history.get(task, [])
        levels = self.level_history.get(task, [])
        self.history[task] = [*means, mean_score][-HISTORY_GROUPS:]
        self.level_history[task] = [*levels, level][-HISTORY_GROUPS:]
        self.group_counts[task] = self.group_counts.get(task, 0) + 1
        with_variance = self.variance_counts.get(task, 0)
        self.variance_counts[task] = with_variance + bool(has_variance)

    def recent_accuracy(self, task: str) -> float | None:
        """Return the mean score of the task's newest groups, None before the first."""
        recent = self.history.get(task, [])[-RECENT_GROUPS:]
        return statistics.fmean(recent) if recent else None

    def state_dict(self) -> dict[str, Any]:
        """Return the state as plain values."""
        return dict(msgspec.to_builtins(self))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state; an invalid one raises ValueError, with no change."""
        loaded = msgspec.convert(state, TaskHistory)
        for name in self.__struct_fields__:
            setattr(self, name, getattr(loaded, name))


@dataclasses.dataclass(frozen=True)
class LevelChange:
    """A change of a task's level.

    Attributes:
        task: The task.
        old: The level before.
        new: The level from now on.
        accuracy: Mean score of the counted groups, carried over to `old`, in [0, 1].
        groups: Number of the counted groups.
    """

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
    direction: Literal[-1, 0, 1] = 0  # of the last step, which a bound may have stopped
    turned: bool = False  # whether a step has gone against the one before it
    # Number of groups before the level was set; None until the next group comes.
    counted_from: Count | None = 0


class _CurriculumState(msgspec.Struct):
    tasks: dict[str, _TaskState]


def _step_size(state: _TaskState, accuracy: float, means: Sequence[float]) -> float:
    """Return the size of a step, without the limit that applies after a turn."""
    stability = max(MIN_STABILITY, 1 - statistics.stdev(means))
    is_too_easy = state.direction > 0 and accuracy > EASY and state.level < MIDDLE
    is_too_hard = state.direction < 0 and accuracy < HARD and state.level > MIDDLE
    is_clear = (is_too_easy or is_too_hard) and stability > STABLE
    return stability * (FAST_STEP if is_clear else STEP)


class Curriculum(MutableMapping[str, float]):
    """A mapping from task to level, and the rule that moves the levels.

    It has the tasks that had results or whose level was set. A level may be set outside
    the bounds of its task: results then only move it towards the bounds, and earlier
    results no longer count. A deleted task begins again at its start level.

    Args:
        target: The mean score to hold, in [0, 1].
    """

    def __init__(self, target: float) -> None:
        self._target = target
        self._bounds: Mapping[str, tuple[float, float]] = {}
        self._tasks: dict[str, _TaskState] = {}

    def set_bounds(self, bounds: Mapping[str, tuple[float, float]]) -> None:
        """Set the lowest and the highest level of each task."""
        self._bounds = bounds

    def start_level(self, task: str) -> float:
        """Return a task's level before its first change."""
        low, high = self._bounds.get(task, (0.0, 1.0))
        return min(max(START_LEVEL, low), high)

    def level_of(self, task: str) -> float:
        """Return the level for a task's next item, in [0, 1]."""
        return self.get(task, self.start_level(task))

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
        state = self._tasks.setdefault(task, _TaskState(self.start_level(task)))
        groups = self._counted_groups(task, state, progress)
        if len(groups) < MIN_GROUPS:
            return None
        old = state.level
        accuracy = statistics.fmean(
            mean - SLOPE * (old - level) for mean, level in groups
        )
        distance = accuracy - self._target
        if abs(distance) <= BAND + ROUNDING:
            return None
        direction: Literal[-1, 1] = 1 if distance > 0 else -1
        if direction == -state.direction:
            state.turned = True
        state.direction = direction
        step = _step_size(state, accuracy, [mean for mean, _ in groups])
        if state.turned:  # the target has been crossed, so it is near
            step = min(step, GAIN * abs(distance))
        # A level that was set outside of the bounds is not pulled in at once.
        low, high = self._bounds.get(task, (0.0, 1.0))
        new = max(old + direction * step, min(low, old))
        state.level = min(new, max(high, old))
        if state.level == old:
            return None
        accuracy = min(max(accuracy, 0.0), 1.0)
        return LevelChange(
            task, old=old, new=state.level, accuracy=accuracy, groups=len(groups)
        )

    def _counted_groups(
        self, task: str, state: _TaskState, progress: TaskHistory
    ) -> list[tuple[float, float]]:
        """Return mean score and level of each group that counts, oldest first."""
        count = progress.group_counts[task]
        if state.counted_from is None:
            state.counted_from = max(0, count - 1)
        means = progress.history[task]
        groups = list(zip(means, progress.level_history[task], strict=False))
        # Without the groups from before the level was set.
        since_set = groups[max(0, len(groups) - (count - state.counted_from)) :]
        near = [
            (mean, level)
            for mean, level in since_set
            if level is not None and abs(level - state.level) <= NEAR + ROUNDING
        ]
        return near[-RECENT_GROUPS:]

    def stats(self) -> dict[str, Any]:
        """Return statistics of the levels; without any, of the start level."""
        levels = list(self.values()) or [START_LEVEL]
        return {
            "tasks_with_adjustments": sum(self.start_level(t) != self[t] for t in self),
            "target_accuracy": self._target,
            "avg_complexity": statistics.fmean(levels),
            "min_complexity": min(levels),
            "max_complexity": max(levels),
        }

    def state_dict(self) -> dict[str, Any]:
        """Return the state as plain values, without target and bounds."""
        return {"tasks": msgspec.to_builtins(self._tasks)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state; an invalid one raises ValueError, with no change."""
        self._tasks = msgspec.convert(state, _CurriculumState).tasks


class _FeedbackState(msgspec.Struct):
    progress: TaskHistory
    curriculum: _CurriculumState
    adaptive: WeightsState | None = None


class Feedback:
    """The results of a run, with the levels and the weights that follow them.

    Attributes:
        progress: The newest results of each task.
        curriculum: The level of each task.
        adaptive: The factors of the tasks' weights, None if weights are fixed.
        moving_tasks: The tasks whose levels follow their results.
        changes: Number of changes of levels so far.

    Example:
        >>> feedback = Feedback(target_accuracy=0.7)
        >>> feedback.moving_tasks = ["gcd"]
        >>> [str(feedback.take("gcd", 1.0, 0.3, False)) for _ in range(3)][-1]
        'level of gcd: 0.30 -> 0.40 (accuracy 1.00 over 3 groups)'
    """

    def __init__(
        self, target_accuracy: float, adaptive: AdaptiveWeights | None = None
    ) -> None:
        self.progress = TaskHistory({}, {}, {}, {})
        self.curriculum = Curriculum(target_accuracy)
        self.adaptive = adaptive
        self.moving_tasks: Collection[str] = ()
        self.changes = 0

    @property
    def has_effect(self) -> bool:
        """Whether results change any level or weight."""
        return bool(self.moving_tasks) or self.adaptive is not None

    def take(
        self, task: str, mean_score: float, level: float | None, has_variance: bool
    ) -> LevelChange | None:
        """Record the result of one group; return the change of its level, if any.

        `level` is that of its item, None if no level made it.
        """
        self.progress.record_group(task, mean_score, level, has_variance)
        if self.adaptive is not None:
            self.adaptive.record(task, has_variance)
        if task not in self.moving_tasks:
            return None
        change = self.curriculum.follow(task, self.progress)
        self.changes += change is not None
        return change

    def stats(self) -> dict[str, Any]:
        """Return statistics of the levels and the results."""
        progress = self.progress
        recent = [progress.recent_accuracy(task) or 0.0 for task in progress.history]
        groups = sum(progress.group_counts.values())
        with_variance = sum(progress.variance_counts.values())
        return {
            **self.curriculum.stats(),
            "total_tasks_tracked": len(recent),
            "avg_recent_accuracy": statistics.fmean(recent or [0.0]),
            "level_changes": self.changes,
            "groups_with_variance": with_variance / groups if groups else 0.0,
        }

    def details(self) -> dict[str, dict[str, Any]]:
        """Return the level and the results of each task that had a group, by task.

        A task whose count a caller has set may have no results beside it.

        Source: atropos 296a0bc, get_curriculum_stats(), task_details; differs: the
        accuracy is known from the first group on.
        """
        details = {}
        progress = self.progress
        adaptive = self.adaptive or AdaptiveWeights()
        for task, groups in sorted(progress.group_counts.items()):
            levels = progress.level_history.get(task) or [None]
            length = len(progress.history.get(task, []))
            with_variance = progress.variance_counts.get(task, 0)
            details[task] = {
                "complexity": self.curriculum.get(task, levels[-1]),
                "groups_processed": groups,
                "recent_accuracy": progress.recent_accuracy(task),
                "history_length": length,
                "adjustable": length >= MIN_GROUPS,
                "groups_with_variance": with_variance / max(1, groups),
                "adaptive_weight": adaptive.factor_of(task),
            }
        return details

    def table(self) -> tuple[list[str], list[list[Any]]]:
        """Return the columns and the rows of a table of the details."""
        details = self.details()
        columns = ["task", *next(iter(details.values()), {})]
        return columns, [[task, *row.values()] for task, row in details.items()]

    def state_dict(self) -> dict[str, Any]:
        """Return the state as plain values."""
        return {
            "progress": self.progress.state_dict(),
            "curriculum": self.curriculum.state_dict(),
            "adaptive": self.adaptive and self.adaptive.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state; an invalid one raises ValueError, with no change."""
        loaded = msgspec.convert(state, _FeedbackState)
        if self.adaptive is not None and loaded.adaptive is not None:
            self.adaptive.load_state_dict(state["adaptive"])
        self.progress.load_state_dict(state["progress"])
        self.curriculum.load_state_dict(state["curriculum"])
