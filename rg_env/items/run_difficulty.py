"""The difficulty of a run, put together from its settings and the scales of its tasks.

Beside tasks/difficulty.py because the scales are those of the installed library, which
only workers may ask. The environment and the simulated server call this, so that both
mean the same items.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence

from rg_env.errors import SettingError
from rg_env.items.scale_probe import resolve_scales
from rg_env.task_rules.table import no_scale_reason
from rg_env.tasks.curriculum import Curriculum
from rg_env.tasks.difficulty import Difficulty
from rg_env.tasks.level_settings import LevelSetting, build_rules
from rg_env.tasks.scales import Scale
from rg_env.workers.worker_pool import WorkerPool

logger = logging.getLogger(__name__)


def _unscaled(tasks: Sequence[str], scales: dict[str, Scale]) -> dict[str, str]:
    """Return the tasks whose items no level changes, with the reason."""
    return {
        task: scales[task].note if task in scales else no_scale_reason(task)
        for task in tasks
        if task not in scales or scales[task].is_dead
    }


async def prepare_difficulty(
    pool: WorkerPool,
    tasks: Sequence[str],
    known: Collection[str],
    mode: LevelSetting,
    task_levels: Mapping[str, LevelSetting],
    curriculum: Curriculum,
) -> Difficulty:
    """Read the scales of the chosen tasks and say how their levels are chosen.

    Args:
        pool: Where the library runs.
        tasks: The chosen tasks.
        known: Every registered task, for the nearest name.
        mode: The setting of all tasks.
        task_levels: Name or pattern to its own setting.
        curriculum: Holds the levels that move; its bounds are set.

    Raises:
        SettingError: A name of `task_levels`, or one that was given a level from
            outside, does not exist or has no scale.
    """
    scales = await resolve_scales(pool, tasks)
    unscaled = _unscaled(tasks, scales)
    try:
        rules = build_rules(tasks, known, unscaled, mode, task_levels)
        usable = {task: scales[task] for task in tasks if task not in unscaled}
        curriculum.limit({task: rules[task].bounds for task in usable}, unscaled)
    except SettingError as error:
        raise SettingError(f"env.{error}") from error
    if unscaled and (mode is not None or task_levels):
        logger.info(
            "%d of %d tasks have no difficulty scale and keep their parameters: %s",
            len(unscaled),
            len(tasks),
            ", ".join(sorted(unscaled)),
        )
    return Difficulty(usable, rules, curriculum)
