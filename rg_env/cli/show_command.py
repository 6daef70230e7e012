"""`show`: an item of a task as the model gets it, and the score of an answer."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from rg_env import ending, yaml_text
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
from rg_env.results.task_sheets import Values
from rg_env.reward.extraction import Extraction, extract_answer
from rg_env.reward.score import OUTCOMES, Score
from rg_env.reward.scoring_rules import ScoringRules
from rg_env.stream.group_scorer import GroupScorer
from rg_env.stream.item import Item, first_usable
from rg_env.stream.sampler import MAX_ENTRY_SEED, mix_of_seed
from rg_env.task_rules.table import solution, source_task
from rg_env.workers.pool_errors import PoolError
from rg_env.workers.worker_pool import WorkerPool
from rg_env.yaml_text import YamlError

MAKE_DEADLINE_S = 60.0
JOB_DEADLINE_S = 300.0
ANSWER = "Answer to score; - reads standard input. A text with <answer> or <think> tags"
ANSWER += " is scored as a whole completion"
PARAM = "Dataset parameter NAME=VALUE, which overrides the level; can be repeated"
TAGS = ("<answer>", "</answer>", "<think>", "</think>")


def _params(_: object, option: click.Parameter, texts: Sequence[str]) -> dict[str, Any]:
    """Return the values, which are YAML, of texts NAME=VALUE."""
    pairs = [text.partition("=") for text in texts]
    try:
        return {name: yaml_text.load(value) for name, _, value in pairs}
    except YamlError as error:
        raise click.BadParameter(f"a value is no YAML: {error}") from error


async def _item(
    pool: WorkerPool,
    name: str,
    level: float | None,
    seeds: Sequence[int],
    params: Mapping[str, Any],
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
        return Item(name, {**step, **params}, seed, level)

    return await first_usable(pool, map(attempt, seeds), deadline_s=MAKE_DEADLINE_S)


async def _values(pool: WorkerPool, item: Item) -> Values:
    """Return what is known of an item."""
    # In a worker, which has the rules of a user's own tasks as well.
    call = (solution, item.task, item.entry)
    return {
        "task": item.task,
        "level": item.level,
        "params": dict(item.params),
        "seed": item.seed,
        "question": item.question,
        "solution": await pool.run(*call, deadline_s=JOB_DEADLINE_S),
    }


async def _answer(
    pool: WorkerPool, item: Item, text: str, rules: ScoringRules
) -> Values:
    """Score an answer, or the answer of a completion, as in training."""
    is_completion = any(tag in text for tag in TAGS)
    read = extract_answer(text) if is_completion else Extraction(text.strip(), None)
    score, reason = Score(0.0, str(read.failure), None), None
    if read.answer is not None:
        scorer = GroupScorer(pool, rules=rules)
        (score,) = await scorer.score_group(item, item.entry, [read.answer])
    if score.outcome == "rejected":
        source = source_task(item.task, item.entry)
        call = (rules.rejection, source, item.entry, read.answer)
        reason = await pool.run(*call, deadline_s=JOB_DEADLINE_S)
    return {
        "answer": score.answer,
        "read_as": "completion" if is_completion else "answer",
        "score": score.value,
        "bare": score.formats.bare if score.formats else None,
        "tagged": score.formats.tagged if score.formats else None,
        "normalized": score.normalized,
        "outcome": score.outcome,
        "meaning": OUTCOMES[score.outcome],
        "reason": reason,
    }


@command("show gcd --level 0.5 --answer 12")
@click.argument("task")
@option("--level", click.FloatRange(0, 1), None, "Level; else the library's defaults")
@option("--seed", click.IntRange(0, MAX_ENTRY_SEED), None, "Seed of the item")
@click.option("--param", multiple=True, callback=_params, help=PARAM)
@option("--answer", str, None, ANSWER)
@no_fixes_option
@task_modules_option
def show(
    task: str,
    level: float | None,
    seed: int | None,
    param: dict[str, Any],
    answer: str | None,
    no_fixes: bool,
    task_modules: Sequence[str],
) -> int:
    """Print an item of a task, and the score of an answer.

    The item is create_dataset(TASK, seed=SEED, size=1, **parameters)[0] of the library.
    """
    seeds = range(100) if seed is None else [seed]
    try:
        with workers(1, task_modules) as pool:
            item = ending.run(_item(pool, task, level, seeds, param))
            values = ending.run(_values(pool, item))
            print("\n".join(task_sheets.lines(values)), flush=True)
            # Not in an event loop: a thread that reads cannot be ended.
            text = sys.stdin.read() if answer == "-" else answer
            if text is not None:
                rules = ScoringRules(scorer_fixes=not no_fixes)
                scored = ending.run(_answer(pool, item, text, rules))
                print("\n".join(task_sheets.lines(scored)))
    except PoolError as error:
        advice = "another --seed, or other parameters, may make another item"
        raise RunError(f"{task}: {why_no_entry(error)}; {advice}") from error
    return 0
