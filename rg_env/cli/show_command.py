"""`show`: one item of a task as the model gets it, and the score of an answer to it."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import Any

import click

from rg_env import ending, yaml_text
from rg_env.cli.command import (
    Command,
    flag,
    json_option,
    no_fixes_option,
    task_modules_option,
    workers,
)
from rg_env.errors import RunError, SettingError, unknown_name
from rg_env.items import worker_jobs
from rg_env.items.group_scorer import GroupScorer
from rg_env.items.installed_library import read_library, read_scales
from rg_env.items.item import Item, first_usable, why_no_entry
from rg_env.reports import task_sheets
from rg_env.reports.task_sheets import Values, answer_values, step_values
from rg_env.reports.terminal import WorkProgress
from rg_env.scoring.extraction import Extraction, extract_answer
from rg_env.scoring.prompt import SYSTEM_PROMPT, build_messages
from rg_env.scoring.score import Score
from rg_env.scoring.scoring_rules import ScoringRules
from rg_env.task_rules.rules import MIXTURE
from rg_env.task_rules.table import solution, source_task
from rg_env.tasks.library import LibraryDescription, TaskInfo
from rg_env.tasks.sampler import MAX_ENTRY_SEED, mix_of_seed
from rg_env.workers.pool_errors import PoolError
from rg_env.workers.worker_pool import WorkerPool
from rg_env.yaml_text import YamlError

DESCRIBE_DEADLINE_S = 300.0
MAKE_DEADLINE_S = 60.0
TAGS = ("<answer>", "</answer>", "<think>", "</think>")


class Param(click.ParamType[tuple[str, Any]]):
    """NAME=VALUE, with the value as YAML writes it."""

    name = "NAME=VALUE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Any]:
        name, equals, text = value.partition("=")
        if not equals:
            self.fail(f"{value!r} is not NAME=VALUE", param, ctx)
        try:
            return name, yaml_text.load(text)
        except YamlError as error:
            self.fail(f"{text!r} for {name} is no YAML value: {error}", param, ctx)


def _task(library: LibraryDescription, name: str) -> TaskInfo:
    if name == MIXTURE:
        raise SettingError(f"command line: {MIXTURE!r} is a mixture of tasks")
    if name not in library.tasks:
        raise unknown_name("command line", name, library.tasks, "task")
    return library.tasks[name]


async def _make(pool: WorkerPool, options: SimpleNamespace) -> Values:
    """Make the item that a command line names; return what is known of it."""
    library = await read_library(pool)
    task, level, scale = _task(library, options.task), options.level, None
    own, place = dict(options.param), f"command line: --param of {task.name}"
    for name in own:
        if name not in task.parameters:
            raise unknown_name(place, name, task.parameters, "parameter")
    if level is not None:
        scales, reasons = await read_scales(pool, [task.name])
        if (scale := scales.get(task.name)) is None:
            raise SettingError(
                f"command line: --level: {task.name!r} has no difficulty scale"
                f" ({reasons[task.name]})"
            )

    def attempt(seed: int) -> Item:
        step = scale.step_at(level, mix_of_seed(seed)).params if scale else {}
        return Item(task.name, {**step, **own}, seed, level)

    first = options.seed or 0
    given = [(task.name, dict(attempt(first).params))]
    fault = await pool.run(
        worker_jobs.check_params, given, deadline_s=DESCRIBE_DEADLINE_S
    )
    if fault is not None:
        raise SettingError(fault[1], place)
    seeds = range(100) if options.seed is None else [first]
    limit = f"given up after {MAKE_DEADLINE_S:g} s of CPU time"
    with WorkProgress(f"making an item of {task.name}, {limit}"):
        made = await first_usable(
            pool,
            map(attempt, seeds),
            deadline_s=MAKE_DEADLINE_S,
            checked=not options.no_fixes,
        )
    entry, mix = made.entry, mix_of_seed(made.seed)
    # In a worker, which has the rules of a user's own tasks as well.
    solved = await pool.run(solution, task.name, entry, deadline_s=DESCRIBE_DEADLINE_S)
    return {
        "task": task.name,
        "category": task.category,
        "reasoning_gym": library.version,
        "level": level,
        "step": scale and step_values(scale, scale.step_at(level, mix), mix),
        "params": dict(made.params),
        "seed": made.seed,
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
        reason = await pool.run(*call, deadline_s=DESCRIBE_DEADLINE_S)
    return answer_values(source, is_completion, score, reason)


def _answer(option: str) -> tuple[str, str]:
    """Return the text of `--answer`, and where it is from."""
    if option != "-":
        return option, "the command line"
    if sys.stdin.isatty():
        print("Type the answer, then Ctrl-D on a line of its own.", file=sys.stderr)
    return sys.stdin.read(), "standard input"


def _show(options: SimpleNamespace, pool: WorkerPool) -> None:
    item = ending.run(_make(pool, options))
    if not options.as_json:
        print("\n".join(task_sheets.lines(item)), flush=True)
        if options.prompt:
            print("\n".join(task_sheets.message_lines(item["messages"])), flush=True)
    answer = None
    if options.answer is not None:
        # Between two loops and not in one: a thread that reads cannot be interrupted.
        text, source = _answer(options.answer)
        rules = ScoringRules(scorer_fixes=not options.no_fixes)
        answer = ending.run(_score(pool, item, text, source, rules))
    if options.as_json:
        print(json.dumps({**item, "answer": answer}, indent=2, default=str))
    elif answer is not None:
        print("\n".join(task_sheets.lines(answer)))


@click.command("show", cls=Command, example="show gcd --level 0.5 --answer 12")
@click.argument("task")
@click.option(
    "--level",
    type=click.FloatRange(0.0, 1.0),
    help="Level of difficulty; by default, the library's default parameters are used",
)
@click.option(
    "--seed",
    type=click.IntRange(0, MAX_ENTRY_SEED),
    help="Seed of the item in the library; by default the first one that makes an item."
    " For a level between two steps, it also decides which step is used",
)
@click.option(
    "--param",
    multiple=True,
    type=Param(),
    help="Dataset parameter, which takes precedence over the level. Can be repeated;"
    " `tasks TASK` lists the parameters",
)
@click.option(
    "--answer",
    help="Answer to score; - reads standard input. A text with <answer> or <think> tags"
    " is scored as a whole completion",
)
@flag("--prompt", text="Also print the messages")
@no_fixes_option
@task_modules_option()
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
