"""Writes tasks/scales.json: `python -m tools.make_scales [TASK ...]`.

Every level of every curriculum is probed in two worker processes, which takes an hour
or so; given names of tasks, only their rows are made anew.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import statistics
import sys
from collections.abc import Sequence

from rg_env.items import worker_jobs
from rg_env.items.installed_library import DEADLINE_S, read_library
from rg_env.tasks.scales import TABLE, Scale, ShippedScales, load_shipped
from rg_env.workers.worker_pool import WorkerPool
from tools.scale_probe import ProbeTally, probe_task

AT_ONCE = 2
"""Steps that are probed at the same time."""

MEMORY_LIMIT_BYTES = 3 * 2**30


def _lines(name: str, rows: Sequence[object]) -> str:
    """Return a member whose value is an array with one element a line."""
    body = ",".join(f"\n    {json.dumps(row, ensure_ascii=False)}" for row in rows)
    return f'   "{name}": [{body}]'


def _task_text(scale: Scale) -> str:
    """Return the row of a task, one line for each step."""
    members = [f'   "digest": {json.dumps(scale.digest)}']
    members.append(_lines("steps", [dataclasses.asdict(s) for s in scale.steps]))
    members.append(_lines("skipped", [dataclasses.asdict(s) for s in scale.skipped]))
    return f'  "{scale.task}": {{\n' + ",\n".join(members) + "\n  }"


def table_text(shipped: ShippedScales) -> str:
    """Return a table as JSON, one line a step, tasks by name: its diffs are read."""
    rows = [_task_text(scale) for _, scale in sorted(shipped.scales.items())]
    version = json.dumps(shipped.library_version)
    body = ",\n".join(rows)
    return f'{{\n "library_version": {version},\n "tasks": {{\n{body}\n }}\n}}\n'


def _report(task: str, levels: tuple[int, ...], tally: ProbeTally) -> None:
    times = tally.made_ms or [0.0]
    found = f"{statistics.median(times):9.1f} ms {max(times):9.1f} max"
    lost = {"late": tally.hung, **tally.lost, **tally.refused, **tally.faults}
    trouble = ", ".join(f"{n} x {what}" for what, n in lost.items() if n)
    place = ",".join(map(str, levels))
    sys.stderr.write(f"{task:26} {place:8} {tally.begun:3} {found}  {trouble}\n")


async def _make(names: Sequence[str]) -> ShippedScales:
    pool = WorkerPool(
        AT_ONCE,
        memory_limit_bytes=MEMORY_LIMIT_BYTES,
        preload=worker_jobs.PRELOAD,
    )
    gate = asyncio.Semaphore(AT_ONCE)

    async def made(task: str) -> Scale | None:
        async with gate:
            steps, skipped = await probe_task(pool, task, _report)
        skipped.sort(key=lambda skip: skip.level)
        found = Scale(task, tuple(steps), tuple(skipped), digests[task])
        return found if steps else None

    try:
        described = await read_library(pool)
        infos = described.tasks.values()
        tasks = [
            i.name for i in infos if i.has_curriculum and (i.name in names or not names)
        ]
        job = worker_jobs.curriculum_digests
        digests = await pool.run(job, tasks, deadline_s=DEADLINE_S)
        found = await asyncio.gather(*map(made, tasks))
    finally:
        pool.close()
    scales = dict(load_shipped().scales) if names else {}
    scales |= {scale.task: scale for scale in found if scale is not None}
    return ShippedScales(described.version, scales)


if __name__ == "__main__":
    TABLE.write_text(table_text(asyncio.run(_make(sys.argv[1:]))), encoding="utf-8")
    sys.stdout.write(f"wrote {TABLE.name}\n")
