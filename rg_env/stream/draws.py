"""Draws of items: the task, the level and the seeds at each position of a stream.

A draw is a pure function of seed and index (seeds.py), with the levels and adaptive
weights at the time of the draw. An instance draws the indices of its shard: of `n`
instances, number `i` has the indices `i`, `i + n`, `i + 2n`, and so on.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from rg_env.errors import SettingError
from rg_env.library import worker_jobs
from rg_env.library.installed_library import DEADLINE_S, read_scales
from rg_env.library.registry import LibraryDescription
from rg_env.reward.prompt import choose_prompt
from rg_env.stream.adaptive_weights import AdaptiveWeights
from rg_env.stream.curriculum import Feedback
from rg_env.stream.difficulty import NO_LEVELS, Difficulty, build_rules
from rg_env.stream.item import Item
from rg_env.stream.seeds import draw_in_turn, draw_weighted
from rg_env.stream.task_selection import StreamSettings, TaskChoice, build_selection
from rg_env.workers.worker_pool import WorkerPool


@dataclasses.dataclass(frozen=True)
class Draw:
    """A draw of an item, before any attempt at it is made."""

    position: int  # in the stream of this instance
    index: int  # in the stream that the instances share
    choice_index: int  # in `Stream.choices`
    task: str
    level: float | None  # in [0, 1], None for the library's defaults


class Stream:
    """The draws of one instance.

    Args:
        choices: The tasks that are drawn, shape (C,).
        settings: Seed, shard, how choices are drawn, and how items are scored.
        difficulty: The levels of the items.
        adaptive: The factors of the choices' weights, None if weights are fixed.

    Example:
        >>> stream = Stream([TaskChoice("gcd")], StreamSettings(seed=7))
        >>> next(stream.attempts(stream.draw(1000)))
        <gcd train #1000>
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

    @property
    def task_names(self) -> list[str]:
        """The chosen tasks, sorted."""
        return sorted({choice.task for choice in self.choices})

    def index_at(self, position: int) -> int:
        """Return the index, in the stream that the instances share, of a position."""
        settings = self.settings
        return position * settings.num_shards + settings.shard_index

    def draw(self, position: int) -> Draw:
        """Return the draw at a position, with the current weights and levels."""
        if position < 0:
            raise ValueError(f"position must be at least 0, found {position!r}")
        seed = self.settings.seed
        index = self.index_at(position)
        if self.settings.task_choice == "in_turn":
            choice_index, point = draw_in_turn(seed, index, len(self.choices))
        else:
            weights = list(map(self._weight_of, self.choices))
            choice_index, point = draw_weighted(seed, index, weights)
        level = self.difficulty.level_at(self.choices[choice_index].task, point)
        return self.build_draw(position, choice_index, level)

    def _weight_of(self, choice: TaskChoice) -> float:
        if self._adaptive is None:
            return choice.weight
        return choice.weight * self._adaptive.factor_of(choice.task)

    def build_draw(self, position: int, choice_index: int, level: float | None) -> Draw:
        """Return the draw with a known choice and level."""
        task = self.choices[choice_index].task
        return Draw(
            position=position,
            index=self.index_at(position),
            choice_index=choice_index,
            task=task,
            level=level,
        )

    def attempts(self, draw: Draw) -> Iterator[Item]:
        """Yield the attempts at a draw; the first usable one is its item."""
        choice = self.choices[draw.choice_index]
        for seed in self.settings.seeds_at(draw.index):
            yield self.item_of(choice, seed, draw.level, draw.index)

    def item_of(
        self, choice: TaskChoice, seed: int, level: float | None, index: int
    ) -> Item:
        """Return an item of a choice, without its entry."""
        params = self.difficulty.params_at(choice.task, level, seed)
        return self.build_item(
            task=choice.task,
            params={**params, **choice.params},  # the settings win over the level
            seed=seed,
            level=level,
            index=index,
        )

    def build_item(self, *, seed: int, **fields: Any) -> Item:
        """Return an item with the prompt and the scoring of the settings."""
        settings = self.settings
        prompt = None
        if settings.system_prompt is not None:
            prompt = choose_prompt(settings.system_prompt, settings.answer_format, seed)
        return Item(
            seed=seed,
            system_prompt=prompt,
            answer_format=settings.answer_format,
            task_modules=tuple(settings.task_modules),
            deadline_s=settings.scoring_deadline_s,
            rules=settings.scoring_rules,
            **fields,
        )


async def prepare_stream(
    pool: WorkerPool,
    library: LibraryDescription,
    settings: StreamSettings,
    feedback: Feedback,
) -> Stream:
    """Return the stream of some settings, whose levels and weights the feedback moves.

    Raises:
        SettingError: A name or parameter does not exist, or the library rejects
            parameters of the settings, by themselves or with those of a level.
    """
    choices = build_selection(library, settings)
    names = sorted({choice.task for choice in choices})
    with_params = [(c.task, dict(c.params)) for c in choices if c.params]
    scales, unscaled = await read_scales(pool, library, names)
    unscaled |= {
        task: scale.note for task, scale in scales.items() if scale.is_constant
    }
    rules = build_rules(
        tasks=names,
        known=library.tasks,
        no_scale=unscaled,
        mode=settings.complexity_mode,
        task_levels=settings.task_levels,
    )
    usable = {task: scales[task] for task in names if task not in unscaled}
    at_steps = [
        (task, {**step.params, **params})
        for task, params in with_params
        if rules[task].mode != "default"
        for step in usable[task].steps
    ]
    rejected = await pool.run(
        worker_jobs.rejected_params, with_params + at_steps, deadline_s=DEADLINE_S
    )
    if rejected is not None:
        task, reason = rejected
        raise SettingError(reason, f"task_params.{task}")
    feedback.curriculum.set_bounds({task: rules[task].bounds for task in usable})
    feedback.moving_tasks = {
        task for task in usable if rules[task].mode == "curriculum"
    }
    difficulty = Difficulty(usable, rules, feedback.curriculum)
    return Stream(choices, settings, difficulty, feedback.adaptive)
