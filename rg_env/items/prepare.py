"""From the settings of a run to its items, by what the workers say of the library."""

from __future__ import annotations

import logging
import random
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from rg_env.errors import SettingError, counted, in_section
from rg_env.items import worker_jobs
from rg_env.items.chosen_tasks import StreamSettings, prepare_stream
from rg_env.items.evaluation_items import EvaluationItems
from rg_env.items.evaluation_specs import (
    Attempts,
    Preset,
    evaluation_specs,
    load_preset,
)
from rg_env.items.installed_library import (
    DEADLINE_S,
    prepare_baselines,
    read_library,
)
from rg_env.items.run_stream import RunStream
from rg_env.tasks.feedback import Feedback
from rg_env.tasks.library import LibraryDescription
from rg_env.tasks.selection import TaskChoice
from rg_env.workers.worker_pool import WorkerPool

if TYPE_CHECKING:  # what makes items must not need pydantic
    from rg_env.settings.environment_settings import CheckedSettings

logger = logging.getLogger(__name__)


async def prepare_items(
    pool: WorkerPool, settings: CheckedSettings, feedback: Feedback
) -> RunStream:
    """Read the library, choose the tasks, begin to check them; attach the feedback.

    Raises:
        SettingError: A name or parameter does not exist.
        LibraryError: reasoning-gym cannot be used.
    """
    library = await read_library(pool)
    _log_library(library)
    if settings.scorer_fixes:
        await _log_fixes(pool)
    with in_section("env."):
        of_stream = StreamSettings.of(settings)
        stream = await prepare_stream(pool, library, of_stream, feedback)
        logger.info("%s chosen", counted(len(stream.task_names), "task"))
        if settings.reward_baseline == "chance":
            stream.baselines = await prepare_baselines(pool, stream.choices)
        stream.fields = {
            "deadline_s": settings.scoring_deadline_s,
            "rules": settings.scoring_rules,
            "task_modules": tuple(settings.task_modules),
        }
        items = RunStream(
            stream,
            pool,
            making_at_once=max(1, settings.worker_count - 1),
            deadline_s=settings.item_deadline_s,
            checked=settings.scorer_fixes,
        )
        items.library = library
        items.evaluation = _evaluation(pool, settings, items)
    return items


def _log_library(library: LibraryDescription) -> None:
    logger.info(
        "reasoning-gym %s from %s%s: %d tasks",
        library.version,
        "the submodule, " if library.from_submodule else "",
        library.location,
        len(library.tasks),
    )
    if library.modules:
        where, names = ", ".join(library.modules), ", ".join(library.own_names)
        logger.info("tasks of your own, from %s: %s", where, names)


async def _log_fixes(pool: WorkerPool) -> None:
    """Log which corrections of the library's scorers apply to the installed version."""
    fixes = await pool.run(worker_jobs.describe_fixes, deadline_s=DEADLINE_S)
    logger.info("%d scorers of the library are corrected", sum(fixes.values()))
    if resting := [task for task, holds in fixes.items() if not holds]:
        logger.warning(
            "other scorers than those that were corrected, so they stay as they are:"
            " %s",
            ", ".join(resting),
        )


def evaluated_choices(
    selection: Sequence[TaskChoice], num_tasks: int | None, eval_seed: int
) -> list[TaskChoice]:
    """Return the choices to evaluate: all, or `num_tasks` chosen by `eval_seed`."""
    if num_tasks is None or num_tasks >= len(selection):
        return list(selection)
    chosen = random.Random(eval_seed).sample(range(len(selection)), num_tasks)
    return [selection[i] for i in sorted(chosen)]


def _evaluation(
    pool: WorkerPool, settings: CheckedSettings, items: RunStream
) -> EvaluationItems:
    """Return the evaluation items; of a task that is not evaluated, one to check it.

    Raises:
        SettingError: The preset has none of the chosen tasks.
    """
    name, seed, level = settings.eval_preset, settings.eval_seed, settings.eval_level
    selection, difficulty = items.stream.choices, items.stream.difficulty
    preset = None if name is None else load_preset(name)
    offered = [c for c in selection if preset is None or c.task in preset.params]
    if not offered:
        raise SettingError(f"{name} has none of the chosen tasks", "eval_preset")
    evaluated = evaluated_choices(offered, settings.num_eval_tasks, seed)
    names = {choice.task for choice in evaluated}
    others = [choice for choice in selection if choice not in evaluated]
    if preset is not None:
        others = [choice for choice in others if choice.task not in names]
        specs = preset.specs(sorted(names))
        _log_preset(f"{name}", preset, {choice.task for choice in others}, names)
    else:
        samples = settings.num_eval_samples_per_task
        specs = evaluation_specs(evaluated, samples, seed, difficulty, level)
    specs += evaluation_specs(others, 1, seed, difficulty, level)
    wanted: dict[str, list[Attempts]] = {}
    for attempts in specs:
        wanted.setdefault(attempts[0].task, []).append(attempts)
    flat = sorted(names - difficulty.scales.keys())
    if level is not None and flat:
        logger.info(
            "tasks without a scale, evaluated without a level: %s", ", ".join(flat)
        )
    return EvaluationItems(pool, settings, dict(sorted(wanted.items())), names, items)


def _log_preset(
    name: str, preset: Preset, others: Collection[str], evaluated: Collection[str]
) -> None:
    """Log how an evaluation differs from the published one."""
    absent = sorted(set(others) - preset.params.keys())
    if absent:
        logger.info("not in %s and not evaluated: %s", name, ", ".join(absent))
    changed = sorted(preset.changed.intersection(evaluated))
    if changed:
        logger.warning(
            "some questions differ from the published ones of %s, because the library"
            " has changed: %s",
            *(name, ", ".join(changed)),
        )
