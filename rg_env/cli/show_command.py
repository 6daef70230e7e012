"""`show`: one item of a task as the model gets it, and the score of an answer to it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from rg_env import ending, yaml_text
from rg_env.answers.extraction import Extraction, extract_answer
from rg_env.answers.guards import refusal, source_task
from rg_env.answers.item_messages import SYSTEM_PROMPT, build_messages
from rg_env.answers.scoring import Score
from rg_env.answers.scoring_rules import ScoringRules
from rg_env.cli import option_types
from rg_env.cli.answer_input import given_answer
from rg_env.cli.printing import print_text
from rg_env.cli.sentence_parser import SentenceParser
from rg_env.errors import SettingError, shown, unknown_name
from rg_env.items import worker_jobs
from rg_env.items.entry_maker import is_unusable
from rg_env.items.group_scorer import GroupScorer, ScoringUnavailable, TaskHandle
from rg_env.items.installed_library import read_library
from rg_env.items.scale_probe import resolve_scales
from rg_env.pool.pool_errors import DeadlineExceeded, JobFailed, PoolError
from rg_env.pool.worker_pool import WorkerPool
from rg_env.reports import item_sheet
from rg_env.reports.item_sheet import AnswerSheet, ItemSheet, Place
from rg_env.tasks.library import MIXTURE, LibraryDescription, TaskInfo
from rg_env.tasks.sampler import mix_of_seed
from rg_env.tasks.scale_repairs import no_scale_reason
from rg_env.tasks.solutions import solution
from rg_env.yaml_text import YamlFault

DESCRIBE_DEADLINE_S = 300.0
MAKE_DEADLINE_S = 60.0
MAX_SEED = 2**32 - 1
SEEDS_TRIED = 100
TAGS = ("<answer>", "</answer>", "<think>", "</think>")


def _param(text: str) -> tuple[str, Any]:
    """Read NAME=VALUE, with the value as YAML writes it."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError(
            f"found {shown(text)}; allowed is NAME=VALUE, as YAML writes values"
        )
    try:
        return name, yaml_text.load(value)
    except YamlFault as fault:
        raise argparse.ArgumentTypeError(
            f"found {shown(value)} for {name}, which is no YAML value: {fault}"
        ) from fault


def build_parser() -> SentenceParser:
    """Return the parser of the command."""
    parser = SentenceParser(
        prog="reasoning_gym_environment.py show",
        description="Make one item of a task and print what the model would get, the"
        " gold answer and the parameters; with an answer, its score as well. The item"
        " is create_dataset(TASK, seed=SEED, size=1, **parameters)[0] of the library.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("task", metavar="TASK", help="a name; `tasks` lists them")
    add(
        "--level",
        type=option_types.number(0.0, 1.0),
        help="difficulty from 0 to 1; the library's default parameters if not given",
    )
    add(
        "--seed",
        type=option_types.whole_number(0, MAX_SEED),
        help="the library's seed of the entry, the first from 0 that makes an item if"
        " not given; it decides as well which of two steps a level between them falls"
        " on",
    )
    add(
        "--param",
        action="append",
        type=_param,
        default=[],
        metavar="NAME=VALUE",
        help="a parameter of the task's dataset, over those of the level; again for"
        " more; `tasks TASK` lists them",
    )
    add(
        "--answer",
        metavar="TEXT",
        help="score this; - reads standard input, as does a pipe without this option."
        " A text that holds <answer> or <think> tags is read as a whole completion",
    )
    add("--prompt", action="store_true", help="print the messages whole")
    add("--no_fixes", action="store_true", help="score as the library's own scorer")
    add("--json", action="store_true", help="print one JSON document instead")
    return parser


def _joined(argv: Sequence[str]) -> list[str]:
    """Join `--answer` with its text, which may begin with a dash as options do."""
    joined: list[str] = []
    for word in argv:
        if joined and joined[-1] == "--answer":
            joined[-1] = f"--answer={word}"
        else:
            joined.append(word)
    return joined


def _params(given: Sequence[tuple[str, Any]], task: TaskInfo) -> dict[str, Any]:
    """Return the parameters of a command line."""
    params: dict[str, Any] = {}
    for name, value in given:
        if name not in task.parameters:
            raise unknown_name(
                f"command line: --param of {task.name}",
                name,
                task.parameters,
                "parameter",
            )
        if name in params:
            raise SettingError(f"--param: {shown(name)} is given twice; give it once")
        params[name] = value
    return params


def _task(library: LibraryDescription, name: str) -> TaskInfo:
    if name == MIXTURE:
        raise SettingError(
            f"command line: {MIXTURE!r} is a mixture and makes no items of its own;"
            " show one of its tasks"
        )
    if name not in library.tasks:
        raise unknown_name("command line", name, library.tasks, "task")
    return library.tasks[name]


async def _place(pool: WorkerPool, task: str, level: float, seed: int) -> Place:
    scales = await resolve_scales(pool, [task])
    if task not in scales:
        raise SettingError(
            f"command line: --level: {task!r} has no difficulty scale"
            f" ({no_scale_reason(task)})"
        )
    mix = mix_of_seed(seed)
    return Place(level, scales[task], scales[task].step_at(level, mix), mix)


async def _make(pool: WorkerPool, options: argparse.Namespace) -> ItemSheet:
    """Make the item of a command line; raises as `_make_of`."""
    seeds = range(SEEDS_TRIED) if options.seed is None else [options.seed]
    for seed in seeds[:-1]:
        try:
            return await _make_of(pool, options, seed)
        except JobFailed as error:
            if not is_unusable(error):
                raise
    return await _make_of(pool, options, seeds[-1])


async def _make_of(
    pool: WorkerPool, options: argparse.Namespace, seed: int
) -> ItemSheet:
    """Make the item of a seed.

    Raises:
        SettingError: It asks for something that is not there.
        PoolError: The item could not be made.
    """
    library = await read_library(pool)
    task = _task(library, options.task)
    given = _params(options.param, task)
    place = None
    if options.level is not None:
        place = await _place(pool, task.name, options.level, seed)
    params = {**(place.step.params if place else {}), **given}
    refused = await pool.run(
        worker_jobs.check_params, [(task.name, params)], deadline_s=DESCRIBE_DEADLINE_S
    )
    if refused is not None:
        what = refused.removeprefix(f"task_params.{task.name}: ")
        raise SettingError(f"command line: --param of {task.name}: {what}")
    entry = await pool.run(
        worker_jobs.make_entry,
        task.name,
        params,
        seed,
        not options.no_fixes,
        deadline_s=MAKE_DEADLINE_S,
    )
    return ItemSheet(
        task=task,
        library_version=library.version,
        seed=seed,
        params=params,
        place=place,
        entry=entry,
        solution=solution(task.name, entry),
        messages=build_messages(entry["question"], SYSTEM_PROMPT),
    )


def _reason(sheet: ItemSheet, answer: str, rules: ScoringRules) -> str | None:
    """Return why an answer must not reach the scorer, None where it may."""
    gold = sheet.entry["answer"]
    longest = rules.longest_answer(gold)
    if len(answer) > longest:
        return f"it has {len(answer)} characters, and {longest} may be"
    guarded = source_task(sheet.task.name, sheet.entry)
    return refusal(guarded, answer, gold if isinstance(gold, str) else None)


async def _score(
    pool: WorkerPool, sheet: ItemSheet, text: str, source: str, rules: ScoringRules
) -> AnswerSheet:
    """Score an answer, or the answer of a completion, as in training.

    Raises:
        ScoringUnavailable: The worker gave no score.
    """
    is_completion = any(tag in text for tag in TAGS)
    read = extract_answer(text) if is_completion else Extraction(text.strip(), None)
    if read.answer is None:
        failed = Score(0.0, str(read.failure), None)
        return AnswerSheet(source, is_completion, failed, None)
    handle = TaskHandle(task=sheet.task.name, params=sheet.params, seed=sheet.seed)
    scorer = GroupScorer(pool, handle.deadline_s, rules)
    (score,) = await scorer.score_group(handle, sheet.entry, [read.answer])
    is_refused = score.outcome == "refused"
    reason = _reason(sheet, read.answer, rules) if is_refused else None
    return AnswerSheet(source, is_completion, score, reason)


def _show(options: argparse.Namespace, pool: WorkerPool) -> None:
    sheet = ending.run(_make(pool, options))
    if not options.json:
        print_text("\n".join(item_sheet.item_lines(sheet, with_prompt=options.prompt)))
    # Between two loops and not in one: a thread that reads cannot be interrupted.
    given = given_answer(options.answer)
    answer = None
    if given is not None:
        rules = ScoringRules(scorer_fixes=not options.no_fixes)
        answer = ending.run(_score(pool, sheet, *given, rules))
    if options.json:
        whole = item_sheet.as_json(sheet, answer)
        print_text(json.dumps(whole, indent=2, default=str))
    elif answer is not None:
        print_text("\n".join(item_sheet.answer_lines(answer)))


def _sentence(task: str, error: Exception) -> str:
    if isinstance(error, JobFailed) and is_unusable(error):
        return f"{error.message}; another --seed makes another item"
    if isinstance(error, DeadlineExceeded):
        return f"{task}: no item within {MAKE_DEADLINE_S:g} s; try another --seed"
    return f"{task}: {error}"


def show(env_cls: Any, argv: Sequence[str]) -> int:
    """Run the command; status 1 if the item cannot be made or scored in time."""
    del env_cls
    options = build_parser().parse(_joined(argv))
    pool = WorkerPool(1, preload=worker_jobs.PRELOAD)
    try:
        _show(options, pool)
    except (PoolError, ScoringUnavailable) as error:
        print(f"error: {_sentence(options.task, error)}", file=sys.stderr)
        return 1
    finally:
        pool.close()
    return 0
