"""`tasks`, `show` and `doctor`: list the tasks, show an item, check the tasks."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
import json
import os
import sys
import textwrap
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import click

from rg_env import shutdown
from rg_env.cli.main import (
    Number,
    command,
    flag,
    names_argument,
    option,
    task_modules_option,
    worker_pool,
)
from rg_env.errors import (
    RunError,
    SettingError,
    counted,
    in_section,
    on_one_line,
    printable,
    visible,
)
from rg_env.library import worker_jobs
from rg_env.library.installed_library import read_library, read_scales
from rg_env.library.registry import LIBRARY_VERSION, LibraryDescription, TaskInfo
from rg_env.library.scales import Scale
from rg_env.library.task_check import check_task, why_no_entry
from rg_env.results.terminal import WorkProgress
from rg_env.reward.score import OUTCOMES, ScoringRules
from rg_env.stream.group_scorer import GroupScorer
from rg_env.stream.item import Item, ItemMaker
from rg_env.stream.seeds import MAX_ENTRY_SEED, mix_of_seed
from rg_env.stream.task_selection import (
    StreamSettings,
    build_selection,
    unknown_task,
)
from rg_env.task_rules.table import solution
from rg_env.workers.call import PoolError
from rg_env.workers.worker_pool import WorkerPool

CORES = os.cpu_count() or 1

MAKE_DEADLINE_S = 20.0
SOLVE_DEADLINE_S = 300.0

ASKS: Mapping[str, str] = json.loads(
    Path(__file__).with_name("task_asks.json").read_text(encoding="utf-8")
)
"""Task to what it asks for, in at most 64 characters."""

ROW = "{:<29} {:>6} {:>8} {:>8} {:>8}"
LEGEND = """\
steps    number of steps from level 0 to level 1; * if the items do not change
default  the level of the library's defaults; off if there is none
ms at    median time to make an item, at level 0 and at level 1
`tasks NAME` shows every step of one task, and why levels are skipped."""

# -- tasks -----------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class TaskFacts:
    """The description and the scale of one task, or the reason why it has none."""

    info: TaskInfo
    scale: Scale | None
    no_scale_reason: str = ""


def _asks_for(info: TaskInfo) -> str:
    return ASKS.get(info.name) or on_one_line(info.summary, 64)


def _cost_text(cost_ms: float | None) -> str:
    return "" if cost_ms is None else f"{cost_ms:.{2 if cost_ms < 1 else 0}f}"


def task_table(tasks: Sequence[TaskFacts]) -> str:
    """Return a table of the tasks by category."""
    lines = [ROW.format("task", "steps", "default", "ms at 0", "ms at 1")]
    ordered = sorted(tasks, key=lambda facts: (facts.info.category, facts.info.name))
    groups = itertools.groupby(ordered, lambda facts: facts.info.category)
    for category, members in groups:
        lines.append(category)
        for facts in members:
            cells = ["none", "", "", ""]
            scale = facts.scale
            if scale is not None:
                default = scale.default_level
                cells = [
                    f"{len(scale.steps)}{'*' if scale.is_constant else ''}",
                    "off" if default is None else f"{default:.2f}",
                    _cost_text(scale.steps[0].item_ms),
                    _cost_text(scale.steps[-1].item_ms),
                ]
            lines.append(ROW.format(f"  {facts.info.name}", *cells).rstrip())
            lines.append(f"    {_asks_for(facts.info)}")
    return "\n".join([*lines, LEGEND, counted(len(tasks), "task")])


def task_details(facts: TaskFacts) -> str:
    """Return everything about one task."""
    info = facts.info
    scale = facts.scale
    values: dict[str, Any] = {
        "task": info.name,
        "category": info.category,
        "asks_for": _asks_for(info),
        "parameters": dict(info.parameters),
        "languages": info.languages or None,
    }
    if scale is None:
        return "\n".join(value_lines({**values, "no scale": facts.no_scale_reason}))
    values["default_level"] = scale.default_level
    values["note"] = scale.note or None
    for number, step in enumerate(scale.steps):
        level = f"{scale.level_of(number):.4g}"
        values[f"level {level} ({_cost_text(step.item_ms)} ms)"] = dict(step.params)
    values |= {f"skipped level {skip.level}": skip.reason for skip in scale.skipped}
    return "\n".join(value_lines(values))


def chosen_tasks(
    library: LibraryDescription, names: Sequence[str], categories: Sequence[str] = ()
) -> list[str]:
    """Return the tasks that match one of the names and one of the categories.

    No names, or no categories, match all tasks.
    """
    with in_section("command line: "):
        by_name = build_selection(library, StreamSettings(names or None))
        settings = StreamSettings(categories=categories or None)
        in_category = {choice.task for choice in build_selection(library, settings)}
    chosen = sorted({choice.task for choice in by_name} & in_category)
    if not chosen:
        raise SettingError("command line: no such task is in such a category")
    return chosen


async def read_facts(
    names: Sequence[str], categories: Sequence[str], pool: WorkerPool
) -> list[TaskFacts]:
    """Return the facts of the matching tasks."""
    library = await read_library(pool)
    chosen = chosen_tasks(library, names, categories)
    scales, reasons = await read_scales(pool, library, chosen)
    return [
        TaskFacts(library.tasks[name], scales.get(name), reasons.get(name, ""))
        for name in chosen
    ]


@command("tasks '*_sorting' --category games")
@names_argument
@click.option("--category", multiple=True, help="Category of tasks; can be repeated")
@task_modules_option
def tasks(
    names: Sequence[str], category: Sequence[str], task_modules: Sequence[str]
) -> int:
    """List the tasks with their questions, their levels and the time to make an item.

    Levels of difficulty go from 0 to 1. If only one task is named, all its steps are
    shown.
    """
    with worker_pool(1, task_modules) as pool:
        facts = shutdown.run(read_facts(names, category, pool))
    print(task_details(facts[0]) if len(facts) == 1 else task_table(facts))
    return 0


# -- show ------------------------------------------------------------------------------


TEXT_BLOCKS = ("question", "solution", "answer")
"""Names of values that are texts of several lines."""


def value_lines(values: Mapping[str, Any]) -> list[str]:
    """Return lines with the names and values that are not None.

    Example:
        >>> value_lines({"task": "gcd", "level": None, "answer": "12"})
        ['task: gcd', 'answer:', '  12']
    """
    lines = []
    for name, value in values.items():
        if value is None:
            continue
        if name in TEXT_BLOCKS and value:
            lines += [f"{name}:", textwrap.indent(visible(value), "  ")]
        else:
            is_text = isinstance(value, str) and value
            text = value if is_text else json.dumps(value, default=str)
            lines.append(f"{name}: {visible(text)}")
    return lines


async def _make_item(
    pool: WorkerPool, name: str, level: float | None, seeds: Sequence[int]
) -> Item:
    """Make an item from the first seed that gives a usable one."""
    library = await read_library(pool)
    scale = None
    if name not in library.tasks:
        raise unknown_task("command line", name, library.tasks)
    if level is not None:
        scales, reasons = await read_scales(pool, library, [name])
        if (scale := scales.get(name)) is None:
            raise SettingError(
                f"command line: --level: {name!r} has no difficulty scale"
                f" ({reasons[name]})"
            )

    def item_of(seed: int) -> Item:
        params: Mapping[str, Any] = {}
        if scale is not None and level is not None:
            params = scale.step_at(level, mix_of_seed(seed)).params
        return Item(name, params, seed, level)

    maker = ItemMaker(deadline_s=MAKE_DEADLINE_S)
    return await maker.make_first_usable(pool, map(item_of, seeds))


async def _shown_values(
    pool: WorkerPool, item: Item, answer: str | None, rules: ScoringRules
) -> dict[str, Any]:
    """Return the values of an item and of an answer, which is scored as in training."""
    values: dict[str, Any] = {
        "task": item.task,
        "level": item.level,
        "params": dict(item.params),
        "seed": item.seed,
        "question": item.question,
        # A worker also knows the rules of a user's own tasks.
        "solution": await pool.run(
            solution, item.task, item.entry, deadline_s=SOLVE_DEADLINE_S
        ),
    }
    if answer is None:
        return values
    scorer = GroupScorer(pool, rules=rules)
    (score,) = await scorer.score_group(item, item.entry, [answer.strip()])
    error = None
    if score.outcome == "scorer_error":
        error = await pool.run(
            worker_jobs.scorer_fault,
            item.task,
            dict(item.params),
            item.entry,
            score.answer,
            rules,
            deadline_s=SOLVE_DEADLINE_S,
        )
    return values | {
        "answer": score.answer,
        "score": score.value,
        "normalized": score.normalized,
        "outcome": score.outcome,
        "meaning": OUTCOMES[score.outcome],
        "error": error,
    }


@command("show gcd --level 0.5 --answer 12")
@click.argument("task")
@option("--level", Number(0, 1), None, "Level; else the library's defaults")
@option("--seed", click.IntRange(0, MAX_ENTRY_SEED), None, "Seed of the item")
@option("--answer", str, None, "Answer to score")
@flag("--no_fixes", text="Use the library's own scorers, without corrections")
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
    seeds = range(100) if seed is None else [seed]
    rules = ScoringRules(scorer_fixes=not no_fixes)
    try:
        with worker_pool(1, task_modules) as pool:
            item = shutdown.run(_make_item(pool, task, level, seeds))
            values = shutdown.run(_shown_values(pool, item, answer, rules))
    except PoolError as error:
        raise RunError(
            f"{task}: {why_no_entry(error)}; another --seed or --level may make another"
            " item"
        ) from error
    print("\n".join(value_lines(values)))
    return 0


# -- doctor ----------------------------------------------------------------------------


def remarks(tasks: Sequence[TaskInfo], changed_scorers: Sequence[str]) -> list[str]:
    """Return lines about tasks with another scorer, and about untranslated tasks."""
    english = [info.name for info in tasks if info.languages == ("en",)]
    scorer = f"another scorer than that of reasoning-gym {LIBRARY_VERSION}"
    notes = {scorer: changed_scorers, "not translated, always in English": english}
    return [f"{note}: {', '.join(names)}" for note, names in notes.items() if names]


async def check_tasks(
    tasks: Sequence[str], items: int, pool: WorkerPool, other: WorkerPool
) -> dict[str, str]:
    """Return each task that fails its check, with its fault."""
    slots = asyncio.Semaphore(2 * CORES)

    async def check(task: str) -> str | None:
        async with slots:
            fault = await check_task(pool, other, task, items)
        progress.advance(task)
        return fault

    with WorkProgress("doctor", len(tasks), "tasks") as progress:
        faults = await asyncio.gather(*map(check, tasks))
    return {task: fault for task, fault in zip(tasks, faults, strict=True) if fault}


@command("doctor gcd '*_sorting' --items 8")
@names_argument
@task_modules_option
@option("--items", click.IntRange(1, 10_000), 4, "Number of items for each task")
def doctor(names: Sequence[str], task_modules: Sequence[str], items: int) -> int:
    """Check this installation: the named tasks, or all.

    Checks that items are made in time, that another process makes the same items, and
    that reference answers score 1.0. Exits with status 0 if all tasks pass, and 1 if
    not.
    """
    # Another process must make the same items.
    with (
        worker_pool(max(1, CORES - 1), task_modules) as pool,
        worker_pool(1, task_modules) as other,
    ):
        library = shutdown.run(read_library(pool))
        tasks = chosen_tasks(library, names)
        faults = shutdown.run(check_tasks(tasks, items, pool, other))
        finding_scorers = pool.run(
            worker_jobs.changed_scorers, tasks, deadline_s=SOLVE_DEADLINE_S
        )
        changed_scorers = shutdown.run(finding_scorers)
        layers = ", ".join(pool.sandbox_layers)
    for task, fault in faults.items():
        print(f"{task}: {printable(fault)}")
    infos = [library.tasks[task] for task in tasks]
    for remark in remarks(infos, changed_scorers):
        print(remark)
    packages = [f"reasoning-gym {library.version}"]
    with contextlib.suppress(metadata.PackageNotFoundError):
        packages.append(f"atroposlib {metadata.version('atroposlib')}")
    print(f"python {sys.version.split()[0]}, {', '.join(packages)}; sandbox: {layers}")
    passed = len(tasks) - len(faults)
    print(f"passed: {passed} of {counted(len(tasks), 'task')}")
    return int(bool(faults))
