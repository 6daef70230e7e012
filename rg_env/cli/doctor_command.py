"""`doctor`: checks this installation, task by task."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from importlib import metadata

import click

from rg_env import ending
from rg_env.cli.command import command, option, task_modules_option, workers
from rg_env.errors import counted, in_section, printable
from rg_env.library.installed_library import read_library
from rg_env.library.task_check import check_task
from rg_env.results.terminal import WorkProgress
from rg_env.stream.selection import StreamSettings, build_selection


@command("doctor gcd '*_sorting' --items 8")
@click.argument("names", nargs=-1, metavar="[NAME_OR_GLOB]...")
@task_modules_option
@option("--items", click.IntRange(1, 10_000), 4, "Number of items for each task")
def doctor(names: Sequence[str], task_modules: Sequence[str], items: int) -> int:
    """Check this installation: the tasks that are named, or all of them.

    Checks that items are made in time, that another process makes the same items, and
    that reference answers score 1.0. Exits with status 0 if all tasks pass, and 1 if
    not.
    """
    cores = os.cpu_count() or 1
    places = asyncio.Semaphore(2 * cores)

    async def check_all() -> dict[str, str | None]:
        library = await read_library(pool)
        with in_section("command line: "):
            chosen = build_selection(library, StreamSettings(names or None))
        tasks = sorted({choice.task for choice in chosen})

        async def check(task: str) -> str | None:
            async with places:
                fault = await check_task(pool, other, task, items)
            progress.advance(task)
            return fault

        with WorkProgress("doctor", len(tasks), "tasks") as progress:
            faults = await asyncio.gather(*map(check, tasks))
        return dict(zip(tasks, faults, strict=True))

    # The second is the other process that has to make the same items.
    with (
        workers(max(1, cores - 1), task_modules) as pool,
        workers(1, task_modules) as other,
    ):
        faults = ending.run(check_all())
        layers = ", ".join(pool.sandbox_layers)
    failed = {task: fault for task, fault in faults.items() if fault}
    for task, fault in failed.items():
        print(f"{task}: {printable(fault)}")
    packages = [f"{p} {metadata.version(p)}" for p in ("reasoning-gym", "atroposlib")]
    print(f"python {sys.version.split()[0]}, {', '.join(packages)}; sandbox: {layers}")
    passed = len(faults) - len(failed)
    print(f"passed: {passed} of {counted(len(faults), 'task')}")
    return int(bool(failed))
