"""What cheap strategies earn, by task and level, through the real worker pool.

    python benchmarks/cheap_strategies.py [--items 24] [--tasks NAME ...]
        [--levels default 0 0.5 1] [--above 0.25] [--json FILE]

Constants, echoes of the question, picks among what it names, zeros and random fills
answer items of every task: at the library's defaults and at every step of the shipped
scale, or at `--levels`, where an item falls on a step as in a run. Shown is what the
strategy that was the best on one half of the items earns on the other half, and the
three that earn most on all of them. `--json` holds every strategy.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import fnmatch
import json
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rg_env.items import worker_jobs
from rg_env.items.guessing.earnings import NOTHING, Earned, ParamsOf, earn, shown_name
from rg_env.items.installed_library import read_library
from rg_env.pool.worker_pool import WorkerPool
from rg_env.tasks.sampler import mix_of_seed
from rg_env.tasks.scales import Scale, load_shipped

MEMORY_LIMIT_BYTES = 3 * 2**30
SHOWN = 3


@dataclasses.dataclass(frozen=True)
class Cell:
    """A task at a level; `level` is None for the library's defaults."""

    task: str
    level: float | None
    params_of: ParamsOf

    @property
    def place(self) -> str:
        return "default" if self.level is None else f"{self.level:.2f}"


def at_level(scale: Scale, level: float) -> ParamsOf:
    return lambda seed: scale.step_at(level, mix_of_seed(seed)).params


def always(params: Mapping[str, Any]) -> ParamsOf:
    return lambda seed: params


def cells_of(task: str, scale: Scale | None, levels: list[str] | None) -> list[Cell]:
    """Return the cells of a task; a step that sets nothing is its defaults."""
    found = []
    if levels is None or "default" in levels:
        found.append(Cell(task, None, always({})))
    if scale is None or scale.is_dead:
        return found
    if levels is None:
        steps = [(scale.level_of(n), step) for n, step in enumerate(scale.steps)]
        found += [Cell(task, at, always(s.params)) for at, s in steps if s.params]
    else:
        numbers = [float(level) for level in levels if level != "default"]
        found += [Cell(task, level, at_level(scale, level)) for level in numbers]
    return found


async def measure(
    pool: WorkerPool, cells: list[Cell], items: int, at_once: int
) -> list[Earned]:
    gate, done = asyncio.Semaphore(at_once), 0

    async def one(cell: Cell) -> Earned:
        nonlocal done
        async with gate:
            key = f"cheap strategies/{cell.task}/{cell.place}"
            earned = await earn(pool, cell.task, cell.params_of, items, key)
        done += 1
        name = f"{cell.task} {cell.place}"
        print(f"\r{done}/{len(cells)} {name:40}", end="", file=sys.stderr)
        return earned

    return list(await asyncio.gather(*map(one, cells)))


def rows(cells: list[Cell], found: list[Earned], above: float) -> Iterator[str]:
    yield f"{'task':24} {'level':7} earned  error items  strategies"
    for cell, earned in zip(cells, found, strict=True):
        if earned is NOTHING:
            yield f"{cell.task:24} {cell.place:7} no items"
        elif earned.mean >= above:
            top = sorted(earned.means.items(), key=lambda one: -one[1])[:SHOWN]
            others = ", ".join(f"{shown_name(name)} {mean:.2f}" for name, mean in top)
            head = f"{cell.task:24} {cell.place:7} {earned.mean:6.2f} "
            yield f"{head} {earned.error:5.2f} {earned.num_items:5}  {others}"


async def run(options: argparse.Namespace) -> int:
    pool = WorkerPool(
        options.workers,
        memory_limit_bytes=MEMORY_LIMIT_BYTES,
        preload=worker_jobs.PRELOAD,
    )
    began = time.monotonic()
    try:
        library = await read_library(pool)
        patterns = options.tasks or ["*"]
        tasks = [
            t for t in library.tasks if any(fnmatch.fnmatch(t, p) for p in patterns)
        ]
        scales = load_shipped().scales
        cells = [
            cell
            for task in tasks
            for cell in cells_of(task, scales.get(task), options.levels)
        ]
        found = await measure(pool, cells, options.items, 2 * options.workers)
    finally:
        pool.close()
    print(file=sys.stderr)
    print("\n".join(rows(cells, found, options.above)))
    print(f"{len(cells)} tasks and levels, {time.monotonic() - began:.0f} s")
    if options.json:
        report = [
            {"task": cell.task, "level": cell.level} | dataclasses.asdict(earned)
            for cell, earned in zip(cells, found, strict=True)
        ]
        options.json.write_text(json.dumps(report, indent=1), encoding="utf-8")
    return 0


def level(text: str) -> str:
    if text != "default" and not 0.0 <= float(text) <= 1.0:
        raise argparse.ArgumentTypeError("default, or a number in 0 to 1")
    return text


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--items", type=int, default=24, help="of each task and level, at least 4")
    add(
        "--tasks",
        nargs="+",
        default=["*"],
        metavar="NAME",
        help="only these; patterns allowed",
    )
    add("--levels", nargs="+", type=level, help="default, or numbers in 0 to 1")
    add("--above", type=float, default=0.0, help="show what earns at least this")
    add("--workers", type=int, default=2)
    add("--json", type=Path, metavar="FILE")
    return asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
