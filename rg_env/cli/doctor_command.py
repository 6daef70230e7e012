"""`doctor`: checks this installation, task by task."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from importlib import metadata

import click

from rg_env import ending
from rg_env.cli.command import (
    Names,
    command,
    json_option,
    no_fixes_option,
    option,
    rendered,
    task_modules_option,
    workers,
)
from rg_env.errors import counted, in_section
from rg_env.items.installed_library import read_library
from rg_env.items.task_check import check_task
from rg_env.reports.terminal import NumberTable, WorkProgress
from rg_env.tasks.selection import StreamSettings, build_selection


@command("doctor gcd '*_sorting' --items 8")
@click.argument("names", nargs=-1, metavar="[NAME_OR_GLOB]...")
@option("--tasks", Names(), None, "Names or patterns, separated by commas")
@task_modules_option
@option("--items", click.IntRange(1, 10_000), 4, "Number of items for each task")
@json_option
@no_fixes_option
def doctor(
    names: Sequence[str],
    tasks: list[str] | None,
    task_modules: Sequence[str] | None,
    items: int,
    as_json: bool,
    no_fixes: bool,
) -> int:
    """Check this installation: the tasks that are named, or all of them.

    Checks that items are made in time, that another process makes the same items, that
    reference answers score 1.0, and that constant answers score 0. Exits with status 0
    if all tasks pass, and 1 if not.
    """
    cores = os.cpu_count() or 1
    places = asyncio.Semaphore(2 * cores)
    versions = {"python": sys.version.split()[0]}

    async def check_all() -> dict[str, str | None]:
        library = await read_library(pool)
        versions.update(library.versions)
        with in_section("command line: "):
            chosen = build_selection(
                library, StreamSettings([*names, *(tasks or [])] or None)
            )

        async def checked(task: str) -> str | None:
            async with places:
                fault = await check_task(pool, other, task, not no_fixes, items)
            progress.advance(task)
            return fault

        of_tasks = sorted({choice.task for choice in chosen})
        with WorkProgress("doctor", len(of_tasks), "tasks") as progress:
            each = await asyncio.gather(*map(checked, of_tasks))
        return dict(zip(of_tasks, each, strict=True))

    # The second is the other process that has to make the same items.
    with (
        workers(max(1, cores - 1), task_modules) as pool,
        workers(1, task_modules) as other,
    ):
        faults = ending.run(check_all())
        layers = ", ".join(pool.sandbox_layers)
    versions["atroposlib"] = metadata.version("atroposlib")
    failed = [task for task, fault in faults.items() if fault]
    passed = len(faults) - len(failed)
    if as_json:
        document = {"versions": versions, "passed": passed, "faults": faults}
        print(json.dumps(document, indent=2))
    else:
        table = NumberTable(["task", "finding"], [], title="Tasks of this installation")
        for task in sorted(faults, key=lambda task: (not faults[task], task)):
            style = "bold red" if faults[task] else None
            table.add_row(task, faults[task] or "passed", style=style)
        last = f"passed: {passed} of {counted(len(faults), 'task')}"
        last += f"; failed: {', '.join(failed)}" if failed else ""
        known = ", ".join(f"{name} {version}" for name, version in versions.items())
        sandbox = f"workers are sandboxed by: {layers}"
        print(rendered(table, known, sandbox, last))
    return int(bool(failed))
