"""Writes tasks/baselines.json: `python -m rg_env.items.make_baselines [TASK ...]`.

Every cheap strategy answers a few items of every task, at the library's defaults and at
every step of the shipped scale. Where one of them earns something, those that earned
most answer many other items, and what the best of them earns there is the baseline. It
takes an hour or so; given names of tasks, only their rows are made anew.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rg_env.errors import unknown_name
from rg_env.items import worker_jobs
from rg_env.items.guessing.earnings import NOTHING, Earned, earn, shown_name
from rg_env.items.installed_library import DEADLINE_S, read_library
from rg_env.pool.worker_pool import WorkerPool
from rg_env.tasks.baselines import (
    HIGHEST,
    TABLE,
    WORTH_SHIPPING,
    Baseline,
    Baselines,
    load_shipped,
    table_text,
)
from rg_env.tasks.scales import Scale
from rg_env.tasks.scales import load_shipped as load_scales

WORKERS = 2
CELLS_AT_ONCE = 4
MEMORY_LIMIT_BYTES = 3 * 2**30

FEW_ITEMS = 24
MANY_ITEMS = 120
"""Enough for a standard error of at most 0.05."""

WORTH_MEASURING = 0.06
"""What a strategy has to earn on the few items, or twice as much where it was not
chosen for what it earns on one half of them."""

FINALISTS = 12
"""Strategies that answer the many items; constants are among them anyway."""

Params = Mapping[str, Any]


def params_of_steps(scale: Scale | None) -> list[Params]:
    """Return the parameters of the defaults and of each step, each once."""
    found: list[Params] = [{}]
    if scale is not None and not scale.is_dead:
        found += [step.params for step in scale.steps if step.params not in found]
    return found


def _is_worth_measuring(earned: Earned) -> bool:
    most = max(earned.means.values(), default=0.0)
    return earned.mean >= WORTH_MEASURING or most >= 2 * WORTH_MEASURING


def baseline_from(params: Params, earned: Earned) -> Baseline | None:
    """Return the baseline of what was earned, None where it is too little."""
    if earned.mean < WORTH_SHIPPING:
        return None
    return Baseline(
        params=params,
        value=round(min(earned.mean, HIGHEST), 3),
        error=round(earned.error, 3),
        strategy=" or ".join(map(shown_name, earned.best)),
    )


async def measure(pool: WorkerPool, task: str, params: Params) -> Baseline | None:
    """Return the baseline of a task at one step, None where it is worth none."""
    key = f"baselines/{task}/{sorted(params.items())!r}"
    earned = await earn(pool, task, lambda seed: params, FEW_ITEMS, f"few/{key}")
    if not _is_worth_measuring(earned):
        return None
    best_first = sorted(earned.means, key=lambda name: -earned.means[name])
    finalists = {*earned.best, *best_first[:FINALISTS]}
    many = await earn(
        pool, task, lambda seed: params, MANY_ITEMS, f"many/{key}", only=finalists
    )
    return None if many is NOTHING else baseline_from(params, many)


def _report(task: str, row: Sequence[Baseline]) -> Iterator[str]:
    yield f"{task}: {len(row)} baselines"
    for baseline in row:
        yield f"  {baseline.value:.2f} +- {baseline.error:.2f} {baseline.strategy}"


async def _make(names: Sequence[str]) -> Baselines:
    pool = WorkerPool(
        WORKERS, memory_limit_bytes=MEMORY_LIMIT_BYTES, preload=worker_jobs.PRELOAD
    )
    gate = asyncio.Semaphore(CELLS_AT_ONCE)

    async def cell(task: str, params: Params) -> Baseline | None:
        async with gate:
            return await measure(pool, task, params)

    async def row(task: str, scale: Scale | None) -> tuple[Baseline, ...]:
        found = await asyncio.gather(*(cell(task, p) for p in params_of_steps(scale)))
        measured = tuple(baseline for baseline in found if baseline is not None)
        sys.stderr.write("".join(f"{line}\n" for line in _report(task, measured)))
        return measured

    try:
        library = await read_library(pool)
        for name in names:
            if name not in library.tasks:
                raise unknown_name("task", name, library.tasks, "task")
        tasks = [task for task in library.tasks if not names or task in names]
        digests = await pool.run(
            worker_jobs.curriculum_digests, tasks, deadline_s=DEADLINE_S
        )
        scales = load_scales().scales
        rows = await asyncio.gather(*(row(task, scales.get(task)) for task in tasks))
    finally:
        pool.close()
    made = dict(zip(tasks, rows, strict=True))
    if not names:
        return Baselines(library.version, made, digests)
    before = load_shipped()
    return Baselines(
        library.version, {**before.by_task, **made}, {**before.digests, **digests}
    )


if __name__ == "__main__":
    TABLE.write_text(table_text(asyncio.run(_make(sys.argv[1:]))), encoding="utf-8")
    sys.stdout.write(f"wrote {TABLE.name}\n")
