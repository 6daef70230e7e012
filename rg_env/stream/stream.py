"""What the items of a stream are: which task, parameters, level and seed come next.

A draw is a pure function of seed and index (sampler.py), and the indices of an instance
are its place among those that share the stream and every nth after it. Levels and
adaptive weights are taken as they stand when the item is drawn.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rg_env.errors import SettingError
from rg_env.library import worker_jobs
from rg_env.library.installed_library import DEADLINE_S, read_scales
from rg_env.library.registry import LibraryDescription
from rg_env.stream.curriculum import AdaptiveWeights, Feedback
from rg_env.stream.difficulty import NO_LEVELS, Difficulty, build_rules
from rg_env.stream.item import Item
from rg_env.stream.sampler import (
    MAX_ATTEMPTS,
    draw,
    draw_in_turn,
    index_in_shard,
    training_seed,
)
from rg_env.stream.selection import StreamSettings, TaskChoice, build_selection
from rg_env.workers.worker_pool import WorkerPool


@dataclasses.dataclass(frozen=True)
class Draw:
    """What was decided of an item before one of its attempts is made."""

    position: int  # in the stream of this instance
    index: int  # in the stream that the instances share
    choice: int  # its number among the choices
    task: str
    level: float | None  # in [0, 1], None for the library's defaults


class Stream:
    """The stream of one instance.

    Args:
        choices: What the draws fall on, shape (C,).
        settings: Seed, shard, how the choices are drawn and the items scored.
        difficulty: The levels of the items.
        adaptive: What the weights of the choices are multiplied by.
    """

    def __init__(
        self,
        choices: Sequence[TaskChoice],
        settings: StreamSettings,
        difficulty: Difficulty = NO_LEVELS,
        adaptive: AdaptiveWeights | None = None,
    ) -> None:
        self.choices = choices
        self.settings = settings
        self.difficulty = difficulty
        self._adaptive = adaptive
        self._in_turn = settings.task_choice == "in_turn"
        # Those that every item has.
        self.fields: dict[str, Any] = {
            "deadline_s": settings.scoring_deadline_s,
            "rules": settings.scoring_rules,
            "task_modules": tuple(settings.task_modules),
            "answer_format": settings.answer_format,
        }

    @property
    def task_names(self) -> list[str]:
        """The chosen tasks, sorted."""
        return sorted({choice.task for choice in self.choices})

    def _index_at(self, position: int) -> int:
        shard = self.settings.shard_index, self.settings.num_shards
        return index_in_shard(position, *shard)

    def draw(self, position: int) -> Draw:
        """Return the draw at a position, by weights and levels as they are now."""
        if position < 0:
            raise ValueError(f"position must be at least 0, found {position!r}")
        seed, index = self.settings.seed, self._index_at(position)
        if self._in_turn:
            choice, point = draw_in_turn(seed, index, len(self.choices))
        else:
            weights = [choice.weight for choice in self.choices]
            if self._adaptive is not None:
                weigh = self._adaptive.weight_of
                weights = [one.weight * weigh(one.task) for one in self.choices]
            choice, point = draw(seed, index, weights)
        level = self.difficulty.level_at(self.choices[choice].task, point)
        return self.drawn(position, choice, level)

    def drawn(self, position: int, choice: int, level: float | None) -> Draw:
        """Return a draw from what was decided of it."""
        task = self.choices[choice].task
        return Draw(position, self._index_at(position), choice, task, level)

    def attempt(self, drawn: Draw, number: int = 0) -> Item:
        """Return an attempt at the item of a draw, without its entry."""
        how = (self.settings.seed, drawn.index, number)
        seed = training_seed(*how, in_turn=self._in_turn)
        params = self.difficulty.params_at(drawn.task, drawn.level, seed)
        params |= self.choices[drawn.choice].params  # those of the settings win
        of_item = (drawn.task, params, seed, drawn.level, drawn.index)
        return Item(*of_item, **self.fields)

    def attempts(self, drawn: Draw) -> Iterator[Item]:
        """Yield the attempts at a draw, of which the first usable one is its item."""
        return (self.attempt(drawn, number) for number in range(MAX_ATTEMPTS))


async def prepare_stream(
    pool: WorkerPool,
    library: LibraryDescription,
    settings: StreamSettings,
    feedback: Feedback,
) -> Stream:
    """Return the stream that settings mean; attach the feedback to its levels.

    Raises:
        SettingError: A name or parameter does not exist, or the library rejects
            parameters, as they are given or with those of one of the levels.
    """
    choices, mode = build_selection(library, settings), settings.complexity_mode
    names = sorted({choice.task for choice in choices})
    own = [(choice.task, dict(choice.params)) for choice in choices if choice.params]
    await _check_params(pool, own)
    scales, unscaled = await read_scales(pool, library, names)
    unscaled |= {task: scale.note for task, scale in scales.items() if scale.is_dead}
    rules = build_rules(names, library.tasks, unscaled, mode, settings.task_levels)
    usable = {task: scales[task] for task in names if task not in unscaled}
    feedback.curriculum.limit({task: rules[task].bounds for task in usable})
    at_steps = [
        (task, {**step.params, **params})
        for task, params in own
        if rules[task].mode != "default"
        for step in usable[task].steps
    ]
    await _check_params(pool, at_steps)
    difficulty = Difficulty(usable, rules, feedback.curriculum)
    adaptive = None
    if settings.task_choice == "adaptive":
        adaptive = AdaptiveWeights(names, settings.adaptive_floor)
    moving = {task for task in usable if rules[task].mode == "curriculum"}
    feedback.attach(moving, adaptive)
    return Stream(choices, settings, difficulty, adaptive)


async def _check_params(
    pool: WorkerPool, given: Sequence[tuple[str, Mapping[str, Any]]]
) -> None:
    job = worker_jobs.rejected_params
    rejected = await pool.run(job, given, deadline_s=DEADLINE_S)
    if rejected is not None:
        task, reason = rejected
        raise SettingError(reason, f"task_params.{task}")
