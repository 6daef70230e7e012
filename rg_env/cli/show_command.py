"""`show`: an item of a task as the model gets it, and the score of an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from rg_env import ending
from rg_env.cli.command import (
    command,
    no_fixes_option,
    option,
    task_modules_option,
    workers,
)
from rg_env.errors import RunError, SettingError, unknown_name
from rg_env.library.installed_library import read_library, read_scales
from rg_env.library.task_check import why_no_entry
from rg_env.results import task_sheets
from rg_env.reward.score import OUTCOMES, ScoringRules
from rg_env.stream.group_scorer import GroupScorer
from rg_env.stream.item import Item, first_usable
from rg_env.stream.sampler import MAX_ENTRY_SEED, mix_of_seed
from rg_env.task_rules.table import solution
from rg_env.workers.pool_errors import PoolError
from rg_env.workers.worker_pool import WorkerPool

MAKE_DEADLINE_S = 60.0
SOLVE_DEADLINE_S = 300.0


async def _item(
    pool: WorkerPool, name: str, level: float | None, seeds: Sequence[int]
) -> Item:
    """Make the item of the first seed that gives one."""
    library, scale = await read_library(pool), None
    if name not in library.tasks:
        raise unknown_name("command line", name, library.tasks, "task")
    if level is not None:
        scales, reasons = await read_scales(pool, library, [name])
        if (scale := scales.get(name)) is None:
            why = f"{name!r} has no difficulty scale ({reasons[name]})"
            raise SettingError(f"command line: --level: {why}")

    def attempt(seed: int) -> Item:
        step: Mapping[str, Any] = {}
        if scale and level is not None:
            step = scale.step_at(level, mix_of_seed(seed)).params
        return Item(name, step, seed, level)

    return await first_usable(pool, map(attempt, seeds), deadline_s=MAKE_DEADLINE_S)


async def _values(
    pool: WorkerPool, item: Item, answer: str | None, rules: ScoringRules
) -> dict[str, Any]:
    """Return what is known of an item, and of an answer as it is scored in training."""
    # In a worker, which has the rules of a user's own tasks as well.
    call = (solution, item.task, item.entry)
    values: dict[str, Any] = {
        "task": item.task,
        "level": item.level,
        "params": dict(item.params),
        "seed": item.seed,
        "question": item.question,
        "solution": await pool.run(*call, deadline_s=SOLVE_DEADLINE_S),
    }
    if answer is None:
        return values
    scorer = GroupScorer(pool, rules=rules)
    (score,) = await scorer.score_group(item, item.entry, [answer.strip()])
    return values | {
        "answer": score.answer,
        "score": score.value,
        "normalized": score.normalized,
        "outcome": score.outcome,
        "meaning": OUTCOMES[score.outcome],
    }


@command("show gcd --level 0.5 --answer 12")
@click.argument("task")
@option("--level", click.FloatRange(0, 1), None, "Level; else the library's defaults")
@option("--seed", click.IntRange(0, MAX_ENTRY_SEED), None, "Seed of the item")
@option("--answer", str, None, "Answer to score")
@no_fixes_option
@task_modules_option
def show(
    task: str,
    level: float | None,
    seed: int | None,
    answer: str | None,
    no_fixes: bool,
    task_modules: Sequence[str],
) -> int:
    """Print an item of a task, and the score of an answer.

    The item is create_dataset(TASK, seed=SEED, size=1, **parameters)[0] of the library.
    """
    seeds, rules = range(100), ScoringRules(scorer_fixes=not no_fixes)
    try:
        with workers(1, task_modules) as pool:
            item = _item(pool, task, level, seeds if seed is None else [seed])
            values = _values(pool, ending.run(item), answer, rules)
            print("\n".join(task_sheets.lines(ending.run(values))))
    except PoolError as error:
        advice = "another --seed or --level may make another item"
        raise RunError(f"{task}: {why_no_entry(error)}; {advice}") from error
    return 0
