"""Writes tasks/scales.json: `python -m tools.make_scales [TASK ...]`.

Every level of every curriculum is built, items are made of it in two worker processes
with a deadline, and the gold answer of each is scored, which takes an hour or so; given
names of tasks, only their rows are made anew. With another version of the library than
that of the table, its digests are added to the scales that have the same steps in it.
What probing cannot know is in the rules of the task: how a level is repaired, and which
curricula set nothing that is read.
"""

from __future__ import annotations

import asyncio
import dataclasses
import statistics
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rg_env.library import worker_jobs
from rg_env.library.installed_library import DEADLINE_S as LIBRARY_S
from rg_env.library.installed_library import read_library
from rg_env.library.scales import (
    TABLE,
    Scale,
    ShippedScales,
    SkippedLevel,
    curriculum_levels,
    load_shipped,
    steps_of,
)
from rg_env.library.task_check import gold_fault, is_unusable
from rg_env.stream.seeds import entry_seed
from rg_env.task_rules.table import solution
from rg_env.workers.call import DeadlineExceededError, JobError, WorkerDiedError
from rg_env.workers.worker_pool import WorkerPool
from tools.tables import table_text

WORKERS = 2

MEMORY_LIMIT_BYTES = 3 * 2**30

TROUBLES = {
    "hung": (0.05, "were not ready after"),
    # Each costs a draw and nothing else.
    "lost": (0.25, "cannot be made:"),
    # Each is made and not sampled, and costs one of a draw's many attempts.
    "refused": (0.9, "are not asked:"),
    "faults": (0.1, "are wrong:"),
}
"""Trouble to the largest share of items that may have it, and how it is told."""

MAX_MEDIAN_MS = 8_000.0

NUM_ITEMS, MAX_ITEMS = 20, 60
"""Items of a step, and of one that had any trouble."""

DEADLINE_S = 20.0
"""For making an item."""

BUDGET_S = 120.0
"""Of making items, after which a step gets no further one."""


class ProbeTally:
    """What happened when items of one configuration were made.

    Attributes:
        begun: The number of items.
        made_ms: The milliseconds that each item took.
        counts: Trouble to its reasons and how often each was met: the limit of time of
            an item that was not ready in it, why the library gave it up or its worker
            ended, why it is not sampled, how its gold answer is scored.
    """

    def __init__(self) -> None:
        self.begun = 0
        self.made_ms: list[float] = []
        self.counts = {trouble: Counter[str]() for trouble in TROUBLES}

    def needs_more(self) -> bool:
        """Say whether another item may change the verdict."""
        hung = self.counts["hung"].total()
        if hung == self.begun >= 2 or hung > TROUBLES["hung"][0] * MAX_ITEMS:
            return False
        return self.begun < (MAX_ITEMS if any(self.counts.values()) else NUM_ITEMS)

    def reason_against(self) -> str | None:
        """Return why the configuration cannot be used, None if it can."""
        for trouble, (most, what) in TROUBLES.items():
            counted = self.counts[trouble]
            if counted.total() > most * self.begun:
                reason, _ = counted.most_common(1)[0]
                return f"{counted.total()} of {self.begun} items {what} {reason}"
        median_ms = statistics.median(self.made_ms)
        if median_ms > MAX_MEDIAN_MS:
            return f"an item takes {median_ms / 1000:.0f} s"
        return None


def timed(*call: Any) -> tuple[float, dict[str, Any]]:
    """Make an entry; return the milliseconds that it takes, and the entry."""
    began = time.perf_counter()
    entry = worker_jobs.make_entry(*call)
    return 1000 * (time.perf_counter() - began), entry


async def probe(pool: WorkerPool, task: str, params: Mapping[str, Any]) -> ProbeTally:
    """Make items of a configuration and score their gold answers."""
    tally = ProbeTally()
    spent_s = 0.0
    while tally.needs_more() and spent_s < BUDGET_S:
        seed = entry_seed("evaluation", f"scales/{task}", tally.begun)
        tally.begun += 1
        try:
            took_ms, entry = await pool.run(
                timed, task, dict(params), seed, deadline_s=DEADLINE_S
            )
        except DeadlineExceededError:
            tally.counts["hung"][f"{DEADLINE_S:g} s"] += 1
            spent_s += DEADLINE_S
        except (JobError, WorkerDiedError) as error:
            trouble = "refused" if is_unusable(error) else "lost"
            tally.counts[trouble][str(error)[:160]] += 1
        else:
            tally.made_ms.append(took_ms)
            spent_s += took_ms / 1000
            if solution(task, entry):
                fault = await gold_fault(pool, task, params, entry, deadline_s=30.0)
                tally.counts["faults"].update([fault] if fault else [])
    return tally


async def scale_of(pool: WorkerPool, task: str, digest: str) -> Scale | None:
    """Return the steps of a task that can be used, and the levels that cannot."""
    levels = await pool.run(curriculum_levels, task, deadline_s=LIBRARY_S)
    steps = []
    candidates, skipped = steps_of(levels)
    for step in candidates:
        tally = await probe(pool, task, step.params)
        reason = tally.reason_against()
        print(task, step.levels, reason or "usable", flush=True)
        if reason is None:
            item_ms = round(statistics.median(tally.made_ms), 2)
            steps.append(dataclasses.replace(step, item_ms=item_ms))
        else:
            skipped += [SkippedLevel(number, reason) for number in step.levels]
    skipped.sort(key=lambda skip: skip.level)
    return Scale(task, tuple(steps), tuple(skipped), (digest,)) if steps else None


def rows_of(scales: Mapping[str, Scale]) -> dict[str, dict[str, Any]]:
    """Return what the table has of each task."""
    every = {task: dataclasses.asdict(scale) for task, scale in scales.items()}
    names = ("digests", "steps", "skipped")
    return {task: {n: of[n] for n in names} for task, of in every.items()}


def with_digests(
    shipped: ShippedScales, other: Mapping[str, Scale]
) -> dict[str, Scale]:
    """Add the digests of another version to the scales that have the same steps."""

    def points(scale: Scale | None) -> list[Any]:
        return [(step.levels, step.params) for step in scale.steps] if scale else []

    return {
        task: dataclasses.replace(
            scale, digests=tuple(sorted({*scale.digests, *other[task].digests}))
        )
        if points(other.get(task)) == points(scale)
        else scale
        for task, scale in shipped.scales.items()
    }


async def _make(names: Sequence[str]) -> ShippedScales:
    preload = (*worker_jobs.PRELOAD, "tools.make_scales")
    pool = WorkerPool(WORKERS, memory_limit_bytes=MEMORY_LIMIT_BYTES, preload=preload)
    try:
        described = await read_library(pool)
        infos = described.tasks.values()
        tasks = [
            i.name for i in infos if i.has_curriculum and (i.name in names or not names)
        ]
        job = worker_jobs.curriculum_digests
        digests = await pool.run(job, tasks, deadline_s=LIBRARY_S)
        found = await asyncio.gather(*(scale_of(pool, t, digests[t]) for t in tasks))
    finally:
        pool.close()
    made_scales = {scale.task: scale for scale in found if scale is not None}
    shipped = load_shipped()
    if described.version != shipped.library_version:
        return dataclasses.replace(shipped, scales=with_digests(shipped, made_scales))
    kept = shipped.scales if names else {}
    return ShippedScales(described.version, {**kept, **made_scales})


if __name__ == "__main__":
    from tools import make_scales  # the name by which workers know `timed`

    made = asyncio.run(make_scales._make(sys.argv[1:]))
    text = table_text(made.library_version, rows_of(made.scales))
    TABLE.write_text(text, encoding="utf-8")
