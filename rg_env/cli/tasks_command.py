"""`tasks`: which tasks there are, how hard they can be made and what an item costs."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from rg_env import ending
from rg_env.cli.command import (
    command,
    json_option,
    task_modules_option,
    workers,
)
from rg_env.errors import SettingError, in_section
from rg_env.items.installed_library import read_library, read_scales
from rg_env.reports import task_sheets
from rg_env.reports.task_sheets import TaskFacts
from rg_env.task_rules.rules import MIXTURE
from rg_env.tasks.library import LibraryDescription
from rg_env.tasks.selection import StreamSettings, build_selection
from rg_env.workers.worker_pool import WorkerPool


def chosen_tasks(
    library: LibraryDescription, names: Sequence[str], categories: Sequence[str]
) -> list[str]:
    """Return the tasks that match a name and a category, where those are given."""
    if MIXTURE in names:
        raise SettingError(f"command line: {MIXTURE!r} is a mixture of tasks")
    with in_section("command line: "):
        by_name = build_selection(library, StreamSettings(names or None))
        of_categories = StreamSettings(categories=categories or None)
        by_category = build_selection(library, of_categories)
    chosen = {choice.task for choice in by_name} & {c.task for c in by_category}
    if not chosen:
        raise SettingError(
            "command line: no task with such a name is in such a category"
        )
    return sorted(chosen)


async def _facts(
    names: Sequence[str], categories: Sequence[str], pool: WorkerPool
) -> tuple[LibraryDescription, list[TaskFacts]]:
    library = await read_library(pool)
    chosen = chosen_tasks(library, names, categories)
    scales, reasons = await read_scales(pool, library, chosen)
    return library, [
        TaskFacts(library.tasks[name], scales.get(name), reasons.get(name, ""))
        for name in chosen
    ]


@command("tasks '*_sorting' --category games")
@click.argument("names", nargs=-1, metavar="[NAME_OR_GLOB]...")
@click.option("--category", multiple=True, help="Category of tasks; can be repeated")
@task_modules_option
@json_option
def tasks(
    names: Sequence[str],
    category: Sequence[str],
    task_modules: Sequence[str],
    as_json: bool,
) -> int:
    """List the tasks with their questions, their levels and the time to make an item.

    Levels of difficulty go from 0 to 1. If only one task is named, all its steps are
    shown.
    """
    with workers(1, task_modules) as pool:
        library, facts = ending.run(_facts(names, category, pool))
    if as_json:
        document = task_sheets.as_json(facts, library.version)
        print(json.dumps(document, indent=2, default=str))
    elif len(facts) == 1:
        print(task_sheets.details(facts[0]))
    else:
        print(task_sheets.listing(facts))
    return 0
