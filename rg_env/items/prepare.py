"""From the settings of a run to its items, by what the workers say of the library."""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rg_env.errors import SettingError, counted, in_section
from rg_env.items import worker_jobs
from rg_env.items.chosen_tasks import StreamSettings, prepare_stream
from rg_env.items.evaluation_items import EvaluationItems
from rg_env.items.evaluation_specs import Attempts, evaluation_specs, load_preset
from rg_env.items.installed_library import DEADLINE_S, prepare_baselines, read_library
from rg_env.items.run_stream import RunStream
from rg_env.items.stream import Stream
from rg_env.tasks.feedback import Feedback
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
    logger.info(
        "reasoning-gym %s from %s%s: %d tasks",
        library.version,
        "the submodule, " if library.from_submodule else "",
        *(library.location, len(library.tasks)),
    )
    if library.modules:
        where, names = ", ".join(library.modules), ", ".join(library.own_names)
        logger.info("tasks of your own, from %s: %s", where, names)
    if settings.scorer_fixes:
        fixes = await pool.run(worker_jobs.describe_fixes, deadline_s=DEADLINE_S)
        logger.info("%d scorers of the library are corrected", sum(fixes.values()))
        if resting := [task for task, holds in fixes.items() if not holds]:
            what = "other scorers than those that were corrected stay as they are"
            logger.warning("%s: %s", what, ", ".join(resting))
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
        wanted, evaluated = _wanted(settings, stream)
    items.evaluation = EvaluationItems(pool, settings, wanted, evaluated, items)
    return items


def evaluated_choices(
    selection: Sequence[TaskChoice], num_tasks: int | None, eval_seed: int
) -> list[TaskChoice]:
    """Return the choices to evaluate: all, or `num_tasks` chosen by `eval_seed`."""
    if num_tasks is None or num_tasks >= len(selection):
        return list(selection)
    chosen = random.Random(eval_seed).sample(range(len(selection)), num_tasks)
    return [selection[i] for i in sorted(chosen)]


def _wanted(
    settings: CheckedSettings, stream: Stream
) -> tuple[dict[str, list[Attempts]], set[str]]:
    """Return the attempts at evaluation items by task, and the tasks evaluated.

    Of a task that is not evaluated, there is one item, to check it.
    """
    name, seed, level = settings.eval_preset, settings.eval_seed, settings.eval_level
    selection, difficulty = stream.choices, stream.difficulty
    preset = None if name is None else load_preset(name)
    offered = [c for c in selection if preset is None or c.task in preset.params]
    if not offered:
        raise SettingError(f"{name} has none of the chosen tasks", "eval_preset")
    evaluated = evaluated_choices(offered, settings.num_eval_tasks, seed)
    names = {choice.task for choice in evaluated}
    if preset is None:
        others = [choice for choice in selection if choice not in evaluated]
        samples = settings.num_eval_samples_per_task
        specs = evaluation_specs(evaluated, samples, seed, difficulty, level)
    else:
        others = [choice for choice in selection if choice.task not in names]
        specs = preset.specs(sorted(names))
        if absent := sorted({choice.task for choice in others} - preset.params.keys()):
            logger.info("not in %s and not evaluated: %s", name, ", ".join(absent))
        if changed := sorted(preset.changed & names):
            what = "because the library has changed, some questions are not those of"
            logger.warning("%s %s: %s", what, name, ", ".join(changed))
    specs += evaluation_specs(others, 1, seed, difficulty, level)
    wanted: dict[str, list[Attempts]] = {}
    for attempts in specs:
        wanted.setdefault(attempts[0].task, []).append(attempts)
    flat = sorted(names - difficulty.scales.keys())
    if level is not None and flat:
        what = "tasks without a scale, evaluated without a level"
        logger.info("%s: %s", what, ", ".join(flat))
    return dict(sorted(wanted.items())), names
