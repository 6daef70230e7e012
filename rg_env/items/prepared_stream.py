"""The stream of a run: its choices with their levels and weights, ready to be drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rg_env.items.chosen_tasks import check_params
from rg_env.items.installed_library import prepare_difficulty
from rg_env.tasks.adaptive import FLOOR, AdaptiveWeights
from rg_env.tasks.difficulty import NO_RULE, Difficulty, LevelSetting
from rg_env.tasks.feedback import Feedback
from rg_env.tasks.item_stream import ItemStream
from rg_env.tasks.library import LibraryDescription
from rg_env.tasks.selection import TaskChoice, TaskChoosing
from rg_env.workers.worker_pool import WorkerPool


async def prepare_stream(
    pool: WorkerPool,
    library: LibraryDescription,
    selection: Sequence[TaskChoice],
    feedback: Feedback,
    *,
    mode: LevelSetting,
    task_levels: Mapping[str, LevelSetting],
    seed: int,
    shard: tuple[int, int],
    task_choice: TaskChoosing = "weighted",
    adaptive_floor: float = FLOOR,
) -> tuple[ItemStream, Difficulty]:
    """Return the stream of the selection and its levels; attach the feedback to them.

    `shard` is the place of this instance among those that share the stream, and their
    number.

    Raises:
        SettingError: A name of `task_levels` does not exist, or the library rejects
            parameters at one of the levels.
    """
    names = sorted({choice.task for choice in selection})
    levels = (mode, task_levels, feedback.curriculum)
    difficulty = await prepare_difficulty(pool, names, library.tasks, *levels)
    await check_params(pool, _params_at_every_step(selection, difficulty))
    adaptive = None
    if task_choice == "adaptive":
        adaptive = AdaptiveWeights(names, adaptive_floor)
    feedback.attach(difficulty, adaptive)
    stream = ItemStream(
        selection,
        seed,
        shard_index=shard[0],
        num_shards=shard[1],
        difficulty=difficulty,
        adaptive=adaptive,
        in_turn=task_choice == "in_turn",
    )
    return stream, difficulty


def _params_at_every_step(
    selection: Sequence[TaskChoice], difficulty: Difficulty
) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the parameters that own settings make of each step of a scale."""
    return [
        (choice.task, {**step.params, **choice.params})
        for choice in selection
        if choice.params and difficulty.rule_of(choice.task) != NO_RULE
        for step in difficulty.scales[choice.task].steps
    ]
