"""`tasks`: which tasks there are, how hard they can be made and what an item costs."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import click

from rg_env import ending
from rg_env.cli.command import Command
from rg_env.cli.printing import print_text, rendered
from rg_env.errors import SettingError
from rg_env.items import worker_jobs
from rg_env.items.installed_library import read_library
from rg_env.items.scale_probe import resolve_scales
from rg_env.pool.pool_errors import DeadlineExceeded, JobFailed
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


def _chosen(
    library: LibraryDescription, names: Sequence[str], categories: Sequence[str]
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
        by_category = build_selection(library, categories=categories or None)
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
    names: Sequence[str],
    categories: Sequence[str],
    pool: WorkerPool,
    measured_at_once: int,
) -> tuple[LibraryDescription, list[TaskFacts]]:
    library = await read_library(pool)
    chosen = _chosen(library, names, categories)
    resolved = await resolve_scales(pool, chosen)
    scales = {name: resolved.get(name) for name in chosen}
    measured: Mapping[str, Mapping[int, float | str]] = {}
    if measured_at_once:
        measured = await _measured(pool, measured_at_once, scales)
    return library, [
        TaskFacts(
            info=library.tasks[name],
            scale=scale,
            no_scale_reason="" if scale is not None else no_scale_reason(name),
            measured=measured.get(name, {}),
        )
        for name, scale in scales.items()
    ]


def _text(library: LibraryDescription, facts: Sequence[TaskFacts], here: bool) -> str:
    cost_from = (
        "measured here"
        if here
        else f"as measured with reasoning-gym {load_shipped().library_version};"
        " --measure measures here"
    )
    if len(facts) == 1:
        parts = task_list.details(facts[0], library.version, cost_from)
        return rendered(*parts, width=task_list.WIDTH)
    listing = rendered(task_list.table(facts), width=task_list.WIDTH)
    legend = rendered(*task_list.legend(facts, cost_from), width=task_list.WIDTH)
    return f"{task_list.with_asks(listing)}\n{legend}"


@click.command("tasks", cls=Command, example="tasks '*_sorting' --category games")
@click.argument("names", nargs=-1, metavar="[NAME_OR_GLOB]...")
@click.option(
    "--category", multiple=True, help="Only tasks of this category; again for more"
)
@click.option("--measure", is_flag=True, help="Measure the cost on this machine")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead")
def tasks(
    names: Sequence[str], category: Sequence[str], measure: bool, as_json: bool
) -> int:
    """List the tasks with what they ask, their scale and what making an item costs.

    The scale of difficulty goes from 0 to 1; one task is shown with every step of it.
    """
    # One processor is left to this process, or it would be in the figures.
    workers = max(1, (os.cpu_count() or 2) - 1) if measure else 1
    pool = WorkerPool(workers, preload=worker_jobs.PRELOAD)
    try:
        work = _facts(names, category, pool, workers if measure else 0)
        library, facts = ending.run(work)
    finally:
        pool.close()
    if as_json:
        found = task_list.as_json(facts, library.version)
        print_text(json.dumps(found, indent=2, default=str))
    else:
        print_text(_text(library, facts, measure))
    return 0
