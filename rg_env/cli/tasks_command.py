"""`tasks`: which tasks there are, how hard they can be made and what an item costs."""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import os
import statistics
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console, RenderableType

from rg_env import ending
from rg_env.cli.printing import print_text
from rg_env.cli.sentence_parser import SentenceParser
from rg_env.errors import SettingError
from rg_env.items import worker_jobs
from rg_env.items.installed_library import read_library
from rg_env.items.scale_probe import resolve_scales
from rg_env.pool.pool_errors import DeadlineExceeded, JobFailed, PoolError
from rg_env.pool.worker_pool import WorkerPool
from rg_env.reports import task_list
from rg_env.reports.progress_bar import WorkProgress
from rg_env.reports.task_list import TaskFacts
from rg_env.tasks.library import MIXTURE, LibraryDescription
from rg_env.tasks.sampler import MAX_ATTEMPTS, entry_seed
from rg_env.tasks.scale_repairs import no_scale_reason
from rg_env.tasks.scales import Scale, load_shipped
from rg_env.tasks.selection import build_selection

MAKE_DEADLINE_S = 30.0
MEASURED_ITEMS = 6
MEASURED_MS = 2_000.0
"""Time after which a step gets no further item."""


def build_parser() -> SentenceParser:
    """Return the parser of the command."""
    parser = SentenceParser(
        prog="reasoning_gym_environment.py tasks",
        description="List the tasks of the installed library with their scale of"
        " difficulty, 0 to 1, and what making an item costs; one task with every step.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME_OR_GLOB", help="all tasks if not given")
    add(
        "--category",
        action="append",
        metavar="C",
        help="only tasks of this category; again for more",
    )
    add("--measure", action="store_true", help="measure the cost on this machine")
    add("--json", action="store_true", help="print one JSON document instead")
    return parser


def _chosen(
    library: LibraryDescription, names: Sequence[str], categories: Sequence[str] | None
) -> list[str]:
    """Return the tasks that match a name and a category, where those are given.

    Raises:
        SettingError: A name or category matches nothing, or no task matches both.
    """
    if MIXTURE in names:
        raise SettingError(
            f"command line: {MIXTURE!r} is a mixture of tasks and has no row of its own"
        )
    try:
        by_name = build_selection(library, tasks=names or None)
        by_category = build_selection(library, categories=categories)
    except SettingError as error:
        raise SettingError(f"command line: {error}") from error
    chosen = {choice.task for choice in by_name} & {c.task for c in by_category}
    if not chosen:
        raise SettingError(
            "command line: no task has such a name and is in such a category"
        )
    return sorted(chosen)


async def _item_ms(pool: WorkerPool, task: str, params: Mapping[str, Any]) -> float:
    """Return the median time to make an item, in milliseconds.

    The first one is left out if there are more: it has the dataset to build.

    Raises:
        DeadlineExceeded: An item was not ready in time.
        JobFailed: An item cannot be made, or the library made none that can be asked.
    """
    times_ms: list[float] = []
    unusable: JobFailed | None = None
    for number in range(MAX_ATTEMPTS * MEASURED_ITEMS):
        seed = entry_seed("evaluation", f"tasks/{task}", number)
        call: tuple[Any, ...] = (worker_jobs.make_entry, task, dict(params), seed)
        try:
            took_ms, _ = await pool.run(
                worker_jobs.timed, *call, deadline_s=MAKE_DEADLINE_S
            )
        except JobFailed as error:
            if error.kind != "UnusableEntry":
                raise
            unusable = error
            continue
        times_ms.append(took_ms)
        if len(times_ms) == MEASURED_ITEMS or sum(times_ms) > MEASURED_MS:
            break
    if unusable is not None and not times_ms:
        raise unusable
    return statistics.median(times_ms[1:] or times_ms)


def _numbers_to_measure(scale: Scale | None, *, every_step: bool) -> list[int]:
    if scale is None:
        return [0]
    last = len(scale.steps) - 1
    return list(range(last + 1)) if every_step else sorted({0, last})


async def _measured(
    pool: WorkerPool, places: int, scales: Mapping[str, Scale | None]
) -> dict[str, dict[int, float | str]]:
    """Measure steps of tasks: of one task every step, of several both ends.

    Returns:
        Task to the number of a step to its cost, or to why it has none.
    """
    wanted = [
        (task, number)
        for task, scale in scales.items()
        for number in _numbers_to_measure(scale, every_step=len(scales) == 1)
    ]
    found: dict[str, dict[int, float | str]] = {task: {} for task in scales}
    free = asyncio.Semaphore(places)

    async def measure(task: str, number: int) -> None:
        scale = scales[task]
        params = {} if scale is None else scale.steps[number].params
        async with free:
            try:
                found[task][number] = await _item_ms(pool, task, params)
            except (DeadlineExceeded, JobFailed) as error:
                found[task][number] = f"step {number + 1}: {error}"
        progress.advance(task)

    with WorkProgress("measuring", len(wanted), "steps") as progress:
        await asyncio.gather(*(measure(*each) for each in wanted))
    return found


async def _facts(
    options: argparse.Namespace, pool: WorkerPool, places: int
) -> tuple[LibraryDescription, list[TaskFacts]]:
    library = await read_library(pool)
    names = _chosen(library, options.names, options.category)
    resolved = await resolve_scales(pool, names)
    scales = {name: resolved.get(name) for name in names}
    measured: Mapping[str, Mapping[int, float | str]] = {}
    if options.measure:
        measured = await _measured(pool, places, scales)
    return library, [
        TaskFacts(
            info=library.tasks[name],
            scale=scale,
            no_scale_reason="" if scale is not None else no_scale_reason(name),
            measured=measured.get(name, {}),
        )
        for name, scale in scales.items()
    ]


def _rendered(parts: Sequence[RenderableType]) -> str:
    """Return what a terminal is sent for the parts, of at most 80 columns."""
    terminal = Console()
    target = io.StringIO()
    console = Console(
        file=target,
        width=min(task_list.WIDTH, terminal.width),
        force_terminal=terminal.is_terminal,
        color_system="standard" if terminal.color_system else None,
        highlight=False,
    )
    for part in parts:
        console.print(part)
    return "\n".join(line.rstrip() for line in target.getvalue().splitlines())


def _text(library: LibraryDescription, facts: Sequence[TaskFacts], here: bool) -> str:
    cost_from = (
        "measured here"
        if here
        else f"as measured with reasoning-gym {load_shipped().library_version};"
        " --measure measures here"
    )
    if len(facts) == 1:
        return _rendered(task_list.details(facts[0], library.version, cost_from))
    legend = task_list.legend(facts, cost_from)
    return _rendered([task_list.table(facts), *legend])


def tasks(env_cls: Any, argv: Sequence[str]) -> int:
    """Run the command; status 1 if the library cannot be asked."""
    del env_cls
    options = build_parser().parse(argv)
    # One processor is left to this process, or it would be in the figures.
    workers = max(1, (os.cpu_count() or 2) - 1) if options.measure else 1
    pool = WorkerPool(workers, preload=worker_jobs.PRELOAD)
    try:
        library, facts = ending.run(_facts(options, pool, workers))
    except PoolError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    finally:
        pool.close()
    if options.json:
        found = task_list.as_json(facts, library.version)
        print_text(json.dumps(found, indent=2, default=str))
    else:
        print_text(_text(library, facts, options.measure))
    return 0
