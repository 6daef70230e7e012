"""What a run asks: the library, the chosen tasks, the stream and the eval items.

Put together once, in `setup`, from the settings and what the workers say of the
installed library.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from rg_env.errors import SettingError
from rg_env.items import mixture_file, worker_jobs
from rg_env.items.entry_maker import EntryMaker
from rg_env.items.evaluation_items import evaluated_choices
from rg_env.items.installed_library import (
    DEADLINE_S,
    prepare_baselines,
    prepare_difficulty,
    read_library,
)
from rg_env.items.item_settings import ItemSettings
from rg_env.items.item_source import ItemSource
from rg_env.items.task_trials import TaskTrials
from rg_env.tasks.adaptive import AdaptiveWeights
from rg_env.tasks.baselines import NO_BASELINES
from rg_env.tasks.difficulty import NO_RULE, Difficulty
from rg_env.tasks.feedback import Feedback
from rg_env.tasks.item_stream import EvalSpec, ItemStream, evaluation_specs
from rg_env.tasks.library import MIXTURE, LibraryDescription
from rg_env.tasks.sampler import Sampler
from rg_env.tasks.selection import TaskChoice, build_selection
from rg_env.workers.worker_pool import WorkerPool

logger = logging.getLogger(__name__)

LOOKAHEAD = 64
"""Items made ahead: a slow one is hidden as long as these last."""


@dataclasses.dataclass(frozen=True)
class RunItems:
    """What a run asks.

    Attributes:
        library: What is installed.
        task_names: The chosen tasks, sorted.
        sampler: The stream of draws.
        items: The stream of items, made from the draws.
        trials: The evaluation items, being made.
        difficulty: The levels of the items.
    """

    library: LibraryDescription
    task_names: list[str]
    sampler: Sampler
    items: ItemSource
    trials: TaskTrials
    difficulty: Difficulty


async def _describe(pool: WorkerPool) -> LibraryDescription:
    library = await read_library(pool)
    logger.info(
        "reasoning-gym %s from %s%s: %d tasks",
        library.version,
        "the submodule, " if library.from_submodule else "",
        library.location,
        len(library.tasks),
    )
    return library


async def _say_fixes(pool: WorkerPool) -> None:
    """Log how the corrections of the library's scorers stand to the installed one."""
    standings = await pool.run(worker_jobs.describe_fixes, deadline_s=DEADLINE_S)
    changed = {
        standing: [task for task, found in standings.items() if found == standing]
        for standing in ("checked again", "not needed any more")
    }
    same = len(standings) - sum(map(len, changed.values()))
    logger.info("%d scorers of the library are corrected", same)
    for standing, tasks in changed.items():
        if tasks:
            names = ", ".join(tasks)
            logger.warning("scorers that the library changed, %s: %s", standing, names)


async def _select(
    pool: WorkerPool, library: LibraryDescription, settings: ItemSettings
) -> tuple[TaskChoice, ...]:
    """Choose the tasks; their parameters are checked by the library in a worker."""
    tasks, params = settings.tasks, dict(settings.task_params)
    if settings.mixture is not None:
        params[MIXTURE] = mixture_file.read(settings.mixture, params.get(MIXTURE))
        if tasks is None and settings.categories is None:
            tasks = [MIXTURE]
    try:
        selection = build_selection(
            library,
            tasks=tasks,
            categories=settings.categories,
            exclude_tasks=settings.exclude_tasks,
            task_weights=settings.task_weights,
            task_params=params,
        )
    except SettingError as error:
        said = f"env.{error}"
        if settings.mixture is not None:  # where the user has written it
            said = said.replace(f"env.task_params.{MIXTURE}", mixture_file.FIELD, 1)
        raise SettingError(said) from error
    await _check_params(pool, [(c.task, c.params) for c in selection if c.params])
    return selection


async def _check_params(
    pool: WorkerPool, given: Sequence[tuple[str, Mapping[str, Any]]]
) -> None:
    """Refuse dataset parameters that the library does not accept."""
    plain = [(task, dict(params)) for task, params in given]
    refusal = await pool.run(worker_jobs.check_params, plain, deadline_s=DEADLINE_S)
    if refusal is not None:
        raise SettingError(f"env.{refusal}")


async def prepare_items(
    pool: WorkerPool, settings: ItemSettings, feedback: Feedback
) -> RunItems:
    """Read the library, choose the tasks and begin to try them.

    Args:
        pool: Where the library runs.
        settings: The settings.
        feedback: What the results of the run will change; it is attached.

    Raises:
        SettingError: A name or parameter does not exist.
        LibraryError: reasoning-gym cannot be used.
    """
    library = await _describe(pool)
    if settings.scorer_fixes:
        await _say_fixes(pool)
    selection = await _select(pool, library, settings)
    names = sorted({choice.task for choice in selection})
    logger.info("%d tasks chosen", len(names))
    difficulty = await prepare_difficulty(
        pool,
        names,
        library.tasks,
        settings.complexity_mode,
        settings.task_levels,
        feedback.curriculum,
    )
    await _check_params(pool, _params_at_every_step(selection, difficulty))
    adaptive = None
    if settings.task_choice == "adaptive":
        adaptive = AdaptiveWeights(dict.fromkeys(names, 1.0), settings.adaptive_floor)
    feedback.attach(difficulty, adaptive)
    sampler = Sampler(
        [choice.weight for choice in selection],
        settings.seed,
        shard_index=settings.shard_index,
        num_shards=settings.num_shards,
    )
    stream = ItemStream(sampler, selection, difficulty, adaptive)
    maker = EntryMaker(
        pool,
        stream,
        making_at_once=max(1, settings.worker_count - 1),
        deadline_s=settings.item_deadline_s,
        checked=settings.scorer_fixes,
    )
    baselines = NO_BASELINES
    if settings.reward_baseline == "chance":
        baselines = await prepare_baselines(pool, selection)
    items = ItemSource(
        stream,
        maker,
        lookahead=LOOKAHEAD,
        scoring_deadline_s=settings.scoring_deadline_s,
        rules=settings.scoring_rules,
        baselines=baselines,
    )
    trials = _trials(pool, settings, selection, difficulty, items)
    maker.wait_for_trials(trials.of)
    trials.start()
    return RunItems(library, names, sampler, items, trials, difficulty)


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


def _trials(
    pool: WorkerPool,
    settings: ItemSettings,
    selection: Sequence[TaskChoice],
    difficulty: Difficulty,
    items: ItemSource,
) -> TaskTrials:
    """Return the trials of all tasks: evaluation items, or one item to try it."""
    evaluated = evaluated_choices(
        selection, settings.num_eval_tasks, settings.eval_seed
    )
    others = [choice for choice in selection if choice not in evaluated]
    samples, seed = settings.num_eval_samples_per_task, settings.eval_seed
    specs: dict[str, list[EvalSpec]] = {}
    for choices, number in ((evaluated, samples), (others, 1)):
        for spec in evaluation_specs(choices, number, seed, difficulty):
            specs.setdefault(spec.task, []).append(spec)
    names = {choice.task for choice in evaluated}
    return TaskTrials(pool, settings, dict(sorted(specs.items())), names, items)
