"""`doctor`: checks this installation, task by task."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Sequence
from importlib import metadata
from typing import Any

from rich.console import Console

from rg_env import ending
from rg_env.cli import option_types
from rg_env.cli.sentence_parser import SentenceParser
from rg_env.errors import SettingError
from rg_env.items import worker_jobs
from rg_env.items.installed_library import read_library
from rg_env.items.task_check import TaskCheck, TaskFindings
from rg_env.pool.worker_pool import WorkerPool
from rg_env.reports import task_check_table
from rg_env.reports.progress_bar import WorkProgress
from rg_env.tasks.library import LibraryDescription
from rg_env.tasks.selection import build_selection


def build_parser() -> SentenceParser:
    """Return the parser of the command."""
    parser = SentenceParser(
        prog="reasoning_gym_environment.py doctor",
        description="Check this installation task by task: items are made in time and"
        " the same in another process, gold answers score 1.0 there too, and answers"
        " that solve nothing earn nothing. Status 0 if all is well, 1 if not.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add(
        "--tasks",
        type=option_types.names,
        default=None,
        help="names or patterns, by commas; all if not given",
    )
    add(
        "--items",
        type=option_types.whole_number(1, option_types.MOST_ITEMS),
        default=4,
        help="items of each task",
    )
    add(
        "--json",
        type=option_types.writable_file,
        default=None,
        metavar="FILE",
        help="write the findings",
    )
    add("--no_fixes", action="store_true", help="judge the library's own scorers")
    return parser


async def _check(
    options: argparse.Namespace, pool: WorkerPool, other: WorkerPool
) -> tuple[LibraryDescription, list[TaskFindings]]:
    library = await read_library(pool)
    try:
        chosen = build_selection(library, tasks=options.tasks)
    except SettingError as error:
        raise SettingError(f"--{error}") from error
    tasks = sorted({choice.task for choice in chosen})
    check = TaskCheck(pool, other, fixes=not options.no_fixes, num_items=options.items)
    places = asyncio.Semaphore(2 * (os.cpu_count() or 1))

    async def checked(task: str) -> TaskFindings:
        async with places:
            found = await check.run(task, library.tasks[task].category)
        progress.advance(task)
        return found

    with WorkProgress("doctor", len(tasks), "tasks") as progress:
        return library, list(await asyncio.gather(*map(checked, tasks)))


def doctor(env_cls: Any, argv: Sequence[str]) -> int:
    """Run the command; status 0 if every task is well."""
    del env_cls
    options = build_parser().parse(argv)
    workers = max(1, (os.cpu_count() or 2) - 1)
    pools = [
        WorkerPool(workers, preload=worker_jobs.PRELOAD),
        WorkerPool(1, preload=worker_jobs.PRELOAD),
    ]
    try:
        library, findings = ending.run(_check(options, *pools))
        layers = ", ".join(pools[0].sandbox_layers)
    finally:
        for pool in pools:
            pool.close()
    versions = {
        "python": sys.version.split()[0],
        "reasoning_gym": library.version,
        "atroposlib": metadata.version("atroposlib"),
    }
    if options.json is not None:
        found = task_check_table.as_json(findings, versions)
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    console = Console()
    console.print(task_check_table.table(findings))
    sick = [found.task for found in findings if not found.is_well]
    console.print(", ".join(f"{name} {version}" for name, version in versions.items()))
    console.print(f"workers are confined by: {layers}")
    console.print(
        f"{len(findings) - len(sick)} of {len(findings)} tasks are well"
        + (f"; not well: {', '.join(sick)}" if sick else "")
    )
    return 1 if sick else 0
