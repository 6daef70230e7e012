"""`tasks`: which tasks there are, how hard they can be made and what an item costs."""

from __future__ import annotations

from collections.abc import Sequence

import click

from rg_env import ending
from rg_env.cli.command import command, task_modules_option, workers
from rg_env.errors import SettingError, in_section
from rg_env.library.installed_library import read_library, read_scales
from rg_env.library.registry import LibraryDescription
from rg_env.results import task_sheets
from rg_env.results.task_sheets import TaskFacts
from rg_env.stream.selection import StreamSettings, build_selection
from rg_env.workers.worker_pool import WorkerPool


def chosen_tasks(
    library: LibraryDescription, names: Sequence[str], categories: Sequence[str]
) -> list[str]:
    """Return the tasks that match a name and a category, where those are given."""
    with in_section("command line: "):
        choices = build_selection(library, StreamSettings(names or None))
    chosen = sorted({choice.task for choice in choices})
    if categories:
        chosen = [t for t in chosen if library.tasks[t].category in categories]
    if not chosen:
        raise SettingError("command line: no such task is in such a category")
    return chosen


async def facts_of(
    names: Sequence[str], categories: Sequence[str], pool: WorkerPool
) -> list[TaskFacts]:
    """Return what is known of the tasks that match."""
    library = await read_library(pool)
    chosen = chosen_tasks(library, names, categories)
    scales, reasons = await read_scales(pool, library, chosen)
    return [
        TaskFacts(library.tasks[name], scales.get(name), reasons.get(name, ""))
        for name in chosen
    ]


@command("tasks '*_sorting' --category games")
@click.argument("names", nargs=-1, metavar="[NAME_OR_GLOB]...")
@click.option("--category", multiple=True, help="Category of tasks; can be repeated")
@task_modules_option
def tasks(
    names: Sequence[str], category: Sequence[str], task_modules: Sequence[str]
) -> int:
    """List the tasks with their questions, their levels and the time to make an item.

    Levels of difficulty go from 0 to 1. If only one task is named, all its steps are
    shown.
    """
    with workers(1, task_modules) as pool:
        facts = ending.run(facts_of(names, category, pool))
    is_one = len(facts) == 1
    print(task_sheets.details(facts[0]) if is_one else task_sheets.listing(facts))
    return 0
