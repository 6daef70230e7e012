"""What a run asks: the library, the chosen tasks, the stream and the eval items.

Put together once, in `setup`, from the settings and what the workers say of the
installed library.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Sequence

from rg_env.answers.rules import ScoringRules
from rg_env.errors import LibraryError, SettingError
from rg_env.host.config import ReasoningGymEnvConfig
from rg_env.host.evaluation import evaluated_choices, make_eval_items
from rg_env.isolation import jobs
from rg_env.isolation.checkup import gold_fault
from rg_env.isolation.items import ItemSource, MadeItem
from rg_env.isolation.pool import WorkerPool
from rg_env.tasks.library import LibraryDescription
from rg_env.tasks.sampler import Sampler
from rg_env.tasks.selection import TaskChoice, build_selection

logger = logging.getLogger(__name__)

DESCRIBE_DEADLINE_S = 300.0
AHEAD_PER_WORKER = 4


@dataclasses.dataclass(frozen=True)
class Questions:
    """What a run asks.

    Attributes:
        library: What is installed.
        task_names: The chosen tasks, sorted.
        sampler: The stream of draws.
        items: The stream of items, made from the draws.
        eval_items: The evaluation items.
    """

    library: LibraryDescription
    task_names: list[str]
    sampler: Sampler
    items: ItemSource
    eval_items: Sequence[MadeItem]


async def _describe(pool: WorkerPool) -> LibraryDescription:
    library = await pool.run(jobs.describe_library, deadline_s=DESCRIBE_DEADLINE_S)
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
    standings = await pool.run(jobs.describe_fixes, deadline_s=DESCRIBE_DEADLINE_S)
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
    pool: WorkerPool, library: LibraryDescription, config: ReasoningGymEnvConfig
) -> tuple[TaskChoice, ...]:
    """Choose the tasks; their parameters are checked by the library in a worker."""
    try:
        selection = build_selection(
            library,
            tasks=config.tasks,
            categories=config.categories,
            exclude_tasks=config.exclude_tasks,
            task_weights=config.task_weights,
            task_params=config.task_params,
        )
    except SettingError as error:
        raise SettingError(f"env.{error}") from error
    given = [(c.task, dict(c.params)) for c in selection if c.params]
    refusal = await pool.run(jobs.check_params, given, deadline_s=DESCRIBE_DEADLINE_S)
    if refusal is not None:
        raise SettingError(f"env.{refusal}")
    return selection


async def _gold_faults(
    pool: WorkerPool, items: Sequence[MadeItem], rules: ScoringRules
) -> dict[str, str]:
    """Return the tasks whose scorer does not give an item's gold answer 1.0."""
    first = {item.handle.task: item for item in reversed(items)}
    faults = await asyncio.gather(
        *(
            gold_fault(pool, task, item.handle.params, item.entry, rules)
            for task, item in first.items()
        )
    )
    return {task: fault for task, fault in zip(first, faults, strict=True) if fault}


async def prepare_questions(
    pool: WorkerPool, config: ReasoningGymEnvConfig
) -> Questions:
    """Read the library, choose and probe the tasks, make the evaluation items.

    A task that makes no item, or whose scorer denies its own gold answer, is left out.

    Raises:
        SettingError: A name or parameter does not exist.
        LibraryError: No chosen task can make an item.
    """
    library = await _describe(pool)
    if config.scorer_fixes:
        await _say_fixes(pool)
    selection = await _select(pool, library, config)
    names = sorted({choice.task for choice in selection})
    logger.info("%d tasks chosen", len(names))
    sampler = Sampler(
        [choice.weight for choice in selection],
        config.seed,
        shard_index=config.shard_index,
        num_shards=config.num_shards,
    )
    items = ItemSource(
        pool,
        sampler,
        selection,
        lookahead=AHEAD_PER_WORKER * config.worker_count,
        item_deadline_s=config.item_deadline_s,
        scoring_deadline_s=config.scoring_deadline_s,
        rules=config.scoring_rules,
    )
    evaluated = evaluated_choices(selection, config.num_eval_tasks, config.eval_seed)
    others = [choice for choice in selection if choice not in evaluated]
    samples = config.num_eval_samples_per_task
    logger.info("making %d evaluation items", samples * len(evaluated))
    made = await make_eval_items(pool, evaluated, samples, config)
    probes = await make_eval_items(pool, others, 1, config)
    items.leave_out({**made.left_out, **probes.left_out})
    probed = [*made.items, *probes.items]
    items.leave_out(await _gold_faults(pool, probed, config.scoring_rules))
    if not set(names) - set(items.left_out):
        raise LibraryError(
            "no chosen task can make an item; the log names each with its reason"
        )
    asked = [item for item in made.items if item.handle.task not in items.left_out]
    return Questions(library, names, sampler, items, asked)
