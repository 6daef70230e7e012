"""`doctor`: checks this installation, task by task."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

import click

from rg_env import ending
from rg_env.cli.command import (
    MOST_ITEMS,
    Command,
    NamesType,
    option,
    task_modules_option,
)
from rg_env.cli.standard_streams import print_text, rendered
from rg_env.errors import SettingError, counted, in_section
from rg_env.items import worker_jobs
from rg_env.items.installed_library import read_library
from rg_env.items.task_check import TaskCheck, TaskFindings
from rg_env.reports.fitting_table import FittingTable
from rg_env.reports.progress_bar import WorkProgress
from rg_env.tasks.library import LibraryDescription
from rg_env.tasks.selection import build_selection
from rg_env.workers.worker_pool import WorkerPool


def _cell(milliseconds: float | None) -> str:
    return "" if milliseconds is None else f"{milliseconds:.1f}"


def table(findings: Sequence[TaskFindings]) -> FittingTable:
    """Return the findings as a table for the terminal, the failed tasks first."""
    result = FittingTable(
        ["task"],
        ["make ms", "score ms"],
        ["score ms", "make ms"],
        title="Tasks of this installation",
    )
    result.add_column("finding", min_width=20)
    for found in sorted(findings, key=lambda f: (f.has_passed, f.task)):
        text = "; ".join([*found.faults, *found.notes]) or "passed"
        style = None if found.has_passed else "bold red"
        cells = (_cell(found.make_ms), _cell(found.score_ms), text)
        result.add_row(found.task, *cells, style=style)
    return result


def findings_json(
    findings: Sequence[TaskFindings], versions: dict[str, str]
) -> dict[str, Any]:
    """Return the findings as plain values."""
    return {
        "versions": versions,
        "passed": sum(found.has_passed for found in findings),
        "tasks": [dataclasses.asdict(found) for found in findings],
    }


async def _check(
    names: Sequence[str], items: int, fixes: bool, pool: WorkerPool, other: WorkerPool
) -> tuple[LibraryDescription, list[TaskFindings]]:
    library = await read_library(pool)
    with in_section("command line: "):
        chosen = build_selection(library, tasks=names or None)
    tasks = sorted({choice.task for choice in chosen})
    check = TaskCheck(pool, other, fixes=fixes, num_items=items)
    places = asyncio.Semaphore(2 * (os.cpu_count() or 1))

    async def checked(task: str) -> TaskFindings:
        async with places:
            found = await check.run(task, library.tasks[task].category)
        progress.advance(task)
        return found

    with WorkProgress("doctor", len(tasks), "tasks") as progress:
        return library, list(await asyncio.gather(*map(checked, tasks)))


def _report(
    findings: Sequence[TaskFindings], versions: Mapping[str, str], layers: Sequence[str]
) -> str:
    failed = [found.task for found in findings if not found.has_passed]
    passed = (
        f"passed: {len(findings) - len(failed)} of {counted(len(findings), 'task')}"
    )
    return rendered(
        table(findings),
        ", ".join(f"{name} {version}" for name, version in versions.items()),
        f"workers are sandboxed by: {', '.join(layers)}",
        passed + (f"; failed: {', '.join(failed)}" if failed else ""),
    )


@click.command("doctor", cls=Command, example="doctor gcd '*_sorting' --items 8")
@click.argument("names", nargs=-1, metavar="[NAME_OR_GLOB]...")
@click.option(
    "--tasks", type=NamesType(), help="Names or patterns, separated by commas"
)
@task_modules_option()
@option("--items", click.IntRange(1, MOST_ITEMS), 4, "Number of items for each task")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead")
@click.option(
    "--no_fixes",
    is_flag=True,
    help="Check the library's own scorers, without corrections",
)
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
    if as_json and any(name.endswith(".json") for name in names):
        raise SettingError(f"--json: takes no file name; redirect with > {names[-1]}")
    workers = max(1, (os.cpu_count() or 2) - 1)
    preload = worker_jobs.preload_of(task_modules)
    # The second is the other process that has to make the same items.
    pools = [WorkerPool(workers, preload=preload), WorkerPool(1, preload=preload)]
    try:
        checking = _check([*names, *(tasks or [])], items, not no_fixes, *pools)
        library, findings = ending.run(checking)
        layers = pools[0].sandbox_layers
    finally:
        for pool in pools:
            pool.close()
    versions = {
        "python": sys.version.split()[0],
        **library.versions,
        "atroposlib": metadata.version("atroposlib"),
    }
    if as_json:
        print_text(json.dumps(findings_json(findings, versions), indent=2))
    else:
        print_text(_report(findings, versions, layers))
    return 0 if all(found.has_passed for found in findings) else 1
