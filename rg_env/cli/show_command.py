"""`show`: one item of a task as the model gets it, and the score of an answer to it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import click

from rg_env import ending, yaml_text
from rg_env.cli.command import (
    command,
    flag,
    json_option,
    no_fixes_option,
    option,
    task_modules_option,
    workers,
)
from rg_env.errors import RunError, SettingError, unknown_name
from rg_env.items.group_scorer import GroupScorer
from rg_env.items.installed_library import read_library, read_scales
from rg_env.items.item import Item, first_usable
from rg_env.items.task_check import why_no_entry
from rg_env.reports import task_sheets
from rg_env.reports.task_sheets import Values, answer_values, step_values
from rg_env.reports.terminal import WorkProgress
from rg_env.scoring.extraction import Extraction, extract_answer
from rg_env.scoring.prompt import SYSTEM_PROMPT, build_messages
from rg_env.scoring.score import Score
from rg_env.scoring.scoring_rules import ScoringRules
from rg_env.task_rules.rules import MIXTURE
from rg_env.task_rules.table import solution, source_task
from rg_env.tasks.sampler import MAX_ENTRY_SEED, mix_of_seed
from rg_env.workers.pool_errors import PoolError
from rg_env.workers.worker_pool import WorkerPool
from rg_env.yaml_text import YamlError

MAKE_DEADLINE_S = 60.0
JOB_DEADLINE_S = 300.0
TAGS = ("<answer>", "</answer>", "<think>", "</think>")


def _params(_: object, option: click.Parameter, texts: Sequence[str]) -> dict[str, Any]:
    """Return the values, which are YAML, of texts NAME=VALUE."""
    params = {}
    for text in texts:
        name, equals, value = text.partition("=")
        try:
            params[name] = yaml_text.load(value)
        except YamlError as error:
            raise click.BadParameter(f"{text!r} has no YAML value: {error}") from error
        if not equals:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE")
    return params


async def _make(pool: WorkerPool, options: SimpleNamespace) -> Values:
    """Make the item that a command line names; return what is known of it."""
    name, level, scale = options.task, options.level, None
    library = await read_library(pool)
    if name == MIXTURE:
        raise SettingError(f"command line: {MIXTURE!r} is a mixture of tasks")
    if name not in library.tasks:
        raise unknown_name("command line", name, library.tasks, "task")
    known = library.tasks[name].parameters
    for param in options.param:
        if param not in known:
            where = f"command line: --param of {name}"
            raise unknown_name(where, param, known, "parameter")
    if level is not None:
        scales, reasons = await read_scales(pool, library, [name])
        if (scale := scales.get(name)) is None:
            why = f"{name!r} has no difficulty scale ({reasons[name]})"
            raise SettingError(f"command line: --level: {why}")

    def attempt(seed: int) -> Item:
        step = scale.step_at(level, mix_of_seed(seed)).params if scale else {}
        return Item(name, {**step, **options.param}, seed, level)

    seeds = range(100) if options.seed is None else [options.seed]
    limit = f"given up after {MAKE_DEADLINE_S:g} s of CPU time"
    how: Any = {"deadline_s": MAKE_DEADLINE_S, "checked": not options.no_fixes}
    with WorkProgress(f"making an item of {name}, {limit}"):
        item = await first_usable(pool, map(attempt, seeds), **how)
    entry, mix = item.entry, mix_of_seed(item.seed)
    # In a worker, which has the rules of a user's own tasks as well.
    solved = await pool.run(solution, name, entry, deadline_s=JOB_DEADLINE_S)
    return {
        "task": name,
        "category": library.tasks[name].category,
        "reasoning_gym": library.version,
        "level": level,
        "step": scale and step_values(scale, scale.step_at(level, mix), mix),
        "params": dict(item.params),
        "seed": item.seed,
        "messages": [*map(dict, build_messages(entry["question"], SYSTEM_PROMPT))],
        "question": entry["question"],
        "gold_answer": entry["answer"],
        "solution": solved,
        "metadata": entry["metadata"],
    }


async def _score(
    pool: WorkerPool, item: Values, text: str, source: str, rules: ScoringRules
) -> Values:
    """Score an answer, or the answer of a completion, as in training."""
    is_completion = any(tag in text for tag in TAGS)
    read = extract_answer(text) if is_completion else Extraction(text.strip(), None)
    if read.answer is None:
        failed = Score(0.0, str(read.failure), None)
        return answer_values(source, is_completion, failed, None)
    task, question, gold = item["task"], item["question"], item["gold_answer"]
    entry = {"question": question, "answer": gold, "metadata": item["metadata"]}
    spec = Item(task, item["params"], item["seed"])
    scorer = GroupScorer(pool, rules=rules)
    (score,) = await scorer.score_group(spec, entry, [read.answer])
    reason = None
    if score.outcome == "rejected":
        call = (rules.rejection, source_task(task, entry), entry, read.answer)
        reason = await pool.run(*call, deadline_s=JOB_DEADLINE_S)
    return answer_values(source, is_completion, score, reason)


def _show(options: SimpleNamespace, pool: WorkerPool) -> None:
    item = ending.run(_make(pool, options))
    if not options.as_json:
        print("\n".join(task_sheets.lines(item)), flush=True)
        if options.prompt:
            print("\n".join(task_sheets.message_lines(item["messages"])), flush=True)
    answer, text, source = None, options.answer, "the command line"
    if text is not None:
        if text == "-":
            # Between two loops and not in one: a thread that reads cannot be ended.
            text, source = sys.stdin.read(), "standard input"
        rules = ScoringRules(scorer_fixes=not options.no_fixes)
        answer = ending.run(_score(pool, item, text, source, rules))
    if options.as_json:
        print(json.dumps({**item, "answer": answer}, indent=2, default=str))
    elif answer is not None:
        print("\n".join(task_sheets.lines(answer)))


@command("show gcd --level 0.5 --answer 12")
@click.argument("task")
@option(
    "--level",
    click.FloatRange(0.0, 1.0),
    None,
    "Level of difficulty; by default, the library's default parameters are used",
)
@option(
    "--seed",
    click.IntRange(0, MAX_ENTRY_SEED),
    None,
    "Seed of the item in the library; by default the first one that makes an item."
    " For a level between two steps, it also decides which step is used",
)
@click.option(
    "--param",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_params,
    help="Dataset parameter, which takes precedence over the level. Can be repeated;"
    " `tasks TASK` lists the parameters",
)
@option(
    "--answer",
    str,
    None,
    "Answer to score; - reads standard input. A text with <answer> or <think> tags"
    " is scored as a whole completion",
)
@flag("--prompt", text="Also print the messages")
@no_fixes_option
@task_modules_option
@json_option
def show(**given: Any) -> int:
    """Print an item of a task as the model gets it, and the score of an answer.

    The item is create_dataset(TASK, seed=SEED, size=1, **parameters)[0] of the library;
    `tasks` lists the tasks.
    """
    options = SimpleNamespace(**given)
    try:
        with workers(1, options.task_modules) as pool:
            _show(options, pool)
    except PoolError as error:
        reason = f"{options.task}: {why_no_entry(error)}"
        advice = "another --seed, or other parameters, may make another item"
        raise RunError(f"{reason}; {advice}") from error
    return 0
