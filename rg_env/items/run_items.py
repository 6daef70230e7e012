"""What a run samples: the library, the chosen tasks, the stream and the eval items.

Put together once, in `setup`, from the settings and what the workers say of the
installed library.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
from collections.abc import Collection
from typing import TYPE_CHECKING

from rg_env.errors import SettingError, counted, in_section
from rg_env.items import worker_jobs
from rg_env.items.chosen_tasks import StreamSettings, prepare_stream
from rg_env.items.entry_maker import EntryMaker
from rg_env.items.evaluation_items import EvaluationItems, evaluated_choices
from rg_env.items.group_scorer import TaskHandle
from rg_env.items.installed_library import (
    DEADLINE_S,
    prepare_baselines,
    read_library,
)
from rg_env.items.item_source import ItemSource
from rg_env.tasks.baselines import NO_BASELINES
from rg_env.tasks.evaluation_specs import (
    Attempts,
    Preset,
    evaluation_specs,
    load_preset,
)
from rg_env.tasks.feedback import Feedback
from rg_env.tasks.item_stream import ItemStream
from rg_env.tasks.library import LibraryDescription
from rg_env.workers.worker_pool import WorkerPool

if TYPE_CHECKING:  # what makes items must not need pydantic
    from rg_env.settings.environment_settings import CheckedSettings

logger = logging.getLogger(__name__)

LOOKAHEAD = 64
"""Items made ahead: a slow one is hidden as long as these last."""


@dataclasses.dataclass(frozen=True)
class RunItems:
    """What a run samples.

    Attributes:
        library: What is installed.
        task_names: The chosen tasks, sorted.
        stream: What the items are.
        items: The items, made of it.
        evaluation: The evaluation items, being made.
    """

    library: LibraryDescription
    task_names: list[str]
    stream: ItemStream
    items: ItemSource
    evaluation: EvaluationItems

    def stop(self) -> None:
        """Make no more of them; what was drawn stays outstanding in the state."""
        self.items.cancel_ahead()
        self.evaluation.stop()
        if self.items.unused:
            logger.info("%s", self.items.unused_said())


async def _describe(pool: WorkerPool) -> LibraryDescription:
    library = await read_library(pool)
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
    if library.modules and library.has_framework:
        logger.info(
            "one of these modules imports Atropos, so workers start some seconds later;"
            " move the tasks to a module that does not import it"
        )
    return library


async def _say_fixes(pool: WorkerPool) -> None:
    """Log which corrections of the library's scorers apply to the installed version."""
    fixes = await pool.run(worker_jobs.describe_fixes, deadline_s=DEADLINE_S)
    logger.info("%d scorers of the library are corrected", sum(fixes.values()))
    if resting := [task for task, holds in fixes.items() if not holds]:
        said = "other scorers than those that were corrected, so they stay as they are"
        logger.warning("%s: %s", said, ", ".join(resting))


async def prepare_items(
    pool: WorkerPool, settings: CheckedSettings, feedback: Feedback
) -> RunItems:
    """Read the library, choose the tasks, begin to check them; attach the feedback.

    Raises:
        SettingError: A name or parameter does not exist.
        LibraryError: reasoning-gym cannot be used.
    """
    library = await _describe(pool)
    if settings.scorer_fixes:
        await _say_fixes(pool)
    with in_section("env."):
        stream = await prepare_stream(
            pool, library, StreamSettings.of(settings), feedback
        )
        names = sorted({choice.task for choice in stream.choices})
        logger.info("%s chosen", counted(len(names), "task"))
        items = await _item_source(pool, settings, stream)
        evaluation = _evaluation(pool, settings, stream, items)
    items.maker.wait_for_check(evaluation.checked)
    return RunItems(library, names, stream, items, evaluation)


async def _item_source(
    pool: WorkerPool, settings: CheckedSettings, stream: ItemStream
) -> ItemSource:
    maker = EntryMaker(
        pool,
        stream.difficulty.expected_ms,
        making_at_once=max(1, settings.worker_count - 1),
        deadline_s=settings.item_deadline_s,
        checked=settings.scorer_fixes,
    )
    baselines = NO_BASELINES
    if settings.reward_baseline == "chance":
        baselines = await prepare_baselines(pool, stream.choices)
    handle = functools.partial(
        TaskHandle,
        deadline_s=settings.scoring_deadline_s,
        rules=settings.scoring_rules,
        task_modules=tuple(settings.task_modules),
    )
    return ItemSource(
        stream, maker, lookahead=LOOKAHEAD, handle=handle, baselines=baselines
    )


def _evaluation(
    pool: WorkerPool,
    settings: CheckedSettings,
    stream: ItemStream,
    items: ItemSource,
) -> EvaluationItems:
    """Return the evaluation items; of a task that is not evaluated, one to check it.

    Raises:
        SettingError: The preset has none of the chosen tasks.
    """
    name, seed, level = settings.eval_preset, settings.eval_seed, settings.eval_level
    selection, difficulty = stream.choices, stream.difficulty
    preset = None if name is None else load_preset(name)
    offered = [c for c in selection if preset is None or c.task in preset.params]
    if not offered:
        raise SettingError(f"{name} has none of the chosen tasks", "eval_preset")
    evaluated = evaluated_choices(offered, settings.num_eval_tasks, seed)
    names = {choice.task for choice in evaluated}
    others = [choice for choice in selection if choice not in evaluated]
    if preset is not None:
        others = [choice for choice in others if choice.task not in names]
        found = preset.specs(sorted(names))
        _say_preset(f"{name}", preset, {choice.task for choice in others}, names)
    else:
        samples = settings.num_eval_samples_per_task
        found = evaluation_specs(evaluated, samples, seed, difficulty, level)
    found += evaluation_specs(others, 1, seed, difficulty, level)
    wanted: dict[str, list[Attempts]] = {}
    for attempts in found:
        wanted.setdefault(attempts[0].task, []).append(attempts)
    flat = sorted(names - difficulty.scales.keys())
    if level is not None and flat:
        logger.info(
            "tasks without a scale, evaluated without a level: %s", ", ".join(flat)
        )
    return EvaluationItems(pool, settings, dict(sorted(wanted.items())), names, items)


def _say_preset(
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
