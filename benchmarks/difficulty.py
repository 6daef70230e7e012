"""What the level changes: items over the scale of every task, made and scored here.

    python benchmarks/difficulty.py [--items 3] [--tasks gcd jugs] [--json FILE]

Of every step of every scale some items are made in worker processes, and the gold
answer of each is scored. Then items of level 0.0 and of level 1.0 are made from the
same seeds and their questions compared. Counted are

- levels that work: the library's levels whose step made an item, all of whose gold
  answers are paid in full;
- skipped levels, with the reason that the table gives;
- repaired tasks, and dead knobs: tasks whose items do not change with the level;
- tasks in which the level has an effect, beside the original plugin.

A step whose items are rarely late or given up works if it made one. The exit status is
1 if a step does not work, or if a task's items do not change and it is not known as
dead.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rg_env.items import worker_jobs
from rg_env.items.scale_probe import (
    LIBRARY_DEADLINE_S,
    ProbeEffort,
    probe_params,
    resolve_scales,
)
from rg_env.pool.pool_errors import DeadlineExceeded, JobFailed
from rg_env.pool.worker_pool import WorkerPool
from rg_env.tasks.sampler import entry_seed
from rg_env.tasks.scale_repairs import NO_SCALE, REPAIRS
from rg_env.tasks.scales import Scale, Step

DEADLINE_S = 30.0
MEMORY_LIMIT_BYTES = 3 * 2**30
NUM_WORKERS = 2

EFFECTIVE_IN_ORIGINAL = 22
"""Tasks in which the original plugin's difficulty table had an effect: recorded."""

TASKS_OF_LIBRARY = 106
LEVELS_OF_LIBRARY = 556
"""Of reasoning-gym 0.1.25, the mixture included."""


@dataclasses.dataclass
class TaskResult:
    """What was found of one task.

    Attributes:
        scale: Its scale.
        broken: The library's levels that did not work here, to what happened.
        compared: Seeds of which items were made at both ends.
        differing: How many of them differ in the question.
        chars: Median length of the questions at both ends, in characters.
        ms: Median time of an item at both ends, in milliseconds.
    """

    scale: Scale
    broken: dict[int, str] = dataclasses.field(default_factory=dict)
    compared: int = 0
    differing: int = 0
    chars: tuple[float, float] = (0.0, 0.0)
    ms: tuple[float, float] = (0.0, 0.0)

    @property
    def levels(self) -> int:
        """Number of the library's levels that work."""
        on_scale = sum(len(step.levels) for step in self.scale.steps)
        return on_scale - len(self.broken)

    @property
    def has_effect(self) -> bool:
        """Whether the items of both ends differ."""
        return self.differing > 0

    @property
    def is_well(self) -> bool:
        """Whether everything is as the scale says."""
        return not self.broken and self.has_effect is not self.scale.is_dead


async def _questions(pool: WorkerPool, task: str, step: Step, items: int) -> list[Any]:
    """Return for each seed its question and the time in ms, None where none came."""
    found: list[Any] = []
    for number in range(items):
        seed = entry_seed("evaluation", f"difficulty/{task}", number)
        call = (worker_jobs.make_entry, task, dict(step.params), seed)
        try:
            ms, entry = await pool.run(worker_jobs.timed, *call, deadline_s=DEADLINE_S)
            found.append((entry["question"], ms))
        except (DeadlineExceeded, JobFailed):
            found.append(None)
    return found


async def _compare(pool: WorkerPool, result: TaskResult, items: int) -> None:
    steps = result.scale.steps
    low = await _questions(pool, result.scale.task, steps[0], items)
    high = await _questions(pool, result.scale.task, steps[-1], items)
    pairs = [(a, b) for a, b in zip(low, high, strict=True) if a and b]
    if not pairs:
        return
    result.compared = len(pairs)
    result.differing = sum(a[0] != b[0] for a, b in pairs)
    result.chars = (
        statistics.median(len(a[0]) for a, _ in pairs),
        statistics.median(len(b[0]) for _, b in pairs),
    )
    result.ms = (
        statistics.median(a[1] for a, _ in pairs),
        statistics.median(b[1] for _, b in pairs),
    )


async def _measure(pool: WorkerPool, scale: Scale, items: int) -> TaskResult:
    effort = ProbeEffort(
        num_items=items,
        max_items=4 * items,
        deadline_s=DEADLINE_S,
        budget_s=60,
        at_once=1,
    )
    result = TaskResult(scale)
    for step in scale.steps:
        tally = await probe_params(pool, scale.task, step.params, effort)
        if tally.faults or not tally.made_ms:
            reasons = [*tally.faults, *tally.lost, "not ready in time"]
            result.broken |= dict.fromkeys(step.levels, reasons[0])
    await _compare(pool, result, max(items, 5))
    return result


async def _run(options: argparse.Namespace) -> list[TaskResult]:
    pool = WorkerPool(
        NUM_WORKERS, memory_limit_bytes=MEMORY_LIMIT_BYTES, preload=worker_jobs.PRELOAD
    )
    gate = asyncio.Semaphore(NUM_WORKERS)
    done = 0

    async def measured(scale: Scale) -> TaskResult:
        nonlocal done
        async with gate:
            result = await _measure(pool, scale, options.items)
        done += 1
        print(f"\r{done}/{len(scales)} {scale.task:30}", end="", file=sys.stderr)
        return result

    try:
        await pool.run(worker_jobs.describe_library, deadline_s=LIBRARY_DEADLINE_S)
        scales = await resolve_scales(pool, options.tasks)
        results = await asyncio.gather(*map(measured, scales.values()))
    finally:
        pool.close()
    print(file=sys.stderr)
    return list(results)


def _rows(results: Sequence[TaskResult]) -> Iterator[str]:
    yield (
        f"{'task':24}{'levels':>7}{'steps':>6}{'default':>8}{'differ':>7}"
        f"{'characters':>15}{'ms':>15}"
    )
    for result in results:
        scale = result.scale
        at = "-" if scale.default_level is None else f"{scale.default_level:.2f}"
        differ = f"{result.differing}/{result.compared}"
        chars = f"{result.chars[0]:.0f} > {result.chars[1]:.0f}"
        ms = f"{result.ms[0]:.1f} > {result.ms[1]:.1f}"
        yield (
            f"{scale.task:24}{result.levels:7}{len(scale.steps):6}{at:>8}{differ:>7}"
            f"{chars:>15}{ms:>15}"
        )


def _remarks(results: Sequence[TaskResult]) -> Iterator[str]:
    for result in results:
        task = result.scale.task
        if result.scale.is_dead:
            yield f"dead     {task}: {result.scale.note}"
        if task in REPAIRS:
            yield f"repaired {task}: {REPAIRS[task].reason}"
        for skip in result.scale.skipped:
            yield f"skipped  {task} level {skip.level}: {skip.reason}"
        for level, reason in result.broken.items():
            yield f"BROKEN   {task} level {level}: {reason}"
        if not result.has_effect and not result.scale.is_dead:
            yield f"SAME     {task}: items of level 0.0 and 1.0 are the same"
    yield from (f"no scale {task}: {reason}" for task, reason in NO_SCALE.items())


def _summary(results: Sequence[TaskResult]) -> dict[str, Any]:
    return {
        "tasks_of_library": TASKS_OF_LIBRARY,
        "tasks_with_scale": len(results),
        "tasks_where_the_level_has_an_effect": sum(r.has_effect for r in results),
        "the_same_of_the_original": EFFECTIVE_IN_ORIGINAL,
        "levels_of_library": LEVELS_OF_LIBRARY,
        "levels_that_work": sum(r.levels for r in results),
        "levels_skipped": sum(len(r.scale.skipped) for r in results),
        "levels_broken": sum(len(r.broken) for r in results),
        "distinct_steps": sum(len(r.scale.steps) for r in results),
        "tasks_repaired": sum(r.scale.task in REPAIRS for r in results),
        "tasks_dead": [r.scale.task for r in results if r.scale.is_dead],
    }


def main() -> int:
    """Measure, print the table, the remarks and the summary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=3, help="of each step")
    parser.add_argument("--tasks", nargs="+", help="only these")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    results = asyncio.run(_run(options))
    summary = _summary(results)
    print("\n".join(_rows(results)))
    print()
    print("\n".join(_remarks(results)))
    print()
    for name, figure in summary.items():
        print(f"{name:36} {figure}")
    if options.json:
        tasks = [
            dataclasses.asdict(r) | {"levels": r.levels, "is_well": r.is_well}
            for r in results
        ]
        report = {"summary": summary, "tasks": tasks}
        options.json.write_text(json.dumps(report, indent=1), encoding="utf-8")
    return int(not all(result.is_well for result in results))


if __name__ == "__main__":
    sys.exit(main())
