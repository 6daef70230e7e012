"""`doctor`: checks this installation, task by task."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import sys
from collections.abc import Sequence
from importlib import metadata

import click
from rich.table import Table

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
from rg_env.items.task_check import TaskFindings, check_task
from rg_env.reports.terminal import NumberTable, WorkProgress
from rg_env.tasks.selection import StreamSettings, build_selection


def table(findings: Sequence[TaskFindings]) -> Table:
    """Return the findings as a table for the terminal, the failed tasks first."""
    columns = ["make ms", "score ms"]
    title = "Tasks of this installation"
    result = NumberTable(["task"], columns, columns[::-1], title=title)
    result.add_column("finding", min_width=20, overflow="fold")
    for each in sorted(findings, key=lambda f: (f.has_passed, f.task)):
        both = (each.make_ms, each.score_ms)
        times = ["" if ms is None else f"{ms:.1f}" for ms in both]
        text = "; ".join([*each.faults, *each.notes]) or "passed"
        style = None if each.has_passed else "bold red"
        result.add_row(each.task, *times, text, style=style)
    return result


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

    async def check_all() -> list[TaskFindings]:
        library = await read_library(pool)
        versions.update(library.versions)
        with in_section("command line: "):
            chosen = build_selection(
                library, StreamSettings([*names, *(tasks or [])] or None)
            )

        async def checked(task: str) -> TaskFindings:
            async with places:
                info = library.tasks[task]
                findings = await check_task(pool, other, info, not no_fixes, items)
            progress.advance(task)
            return findings

        of_tasks = sorted({choice.task for choice in chosen})
        with WorkProgress("doctor", len(of_tasks), "tasks") as progress:
            return list(await asyncio.gather(*map(checked, of_tasks)))

    # The second is the other process that has to make the same items.
    with (
        workers(max(1, cores - 1), task_modules) as pool,
        workers(1, task_modules) as other,
    ):
        findings = ending.run(check_all())
        layers = ", ".join(pool.sandbox_layers)
    versions["atroposlib"] = metadata.version("atroposlib")
    failed = [each.task for each in findings if not each.has_passed]
    passed = len(findings) - len(failed)
    if as_json:
        all_of = [dataclasses.asdict(each) for each in findings]
        document = {"versions": versions, "passed": passed, "tasks": all_of}
        print(json.dumps(document, indent=2))
    else:
        last = f"passed: {passed} of {counted(len(findings), 'task')}"
        last += f"; failed: {', '.join(failed)}" if failed else ""
        known = ", ".join(f"{name} {version}" for name, version in versions.items())
        sandbox = f"workers are sandboxed by: {layers}"
        print(rendered(table(findings), known, sandbox, last))
    return int(bool(failed))
