"""What every trivial baseline earns, by task and level, through the real worker pool.

    python -m tools.trivial_baselines [--items 24] [--tasks NAME ...]
        [--levels default 0 0.5 1] [--above 0.25] [--json FILE]

Constants, echoes of the question, picks among what it names, zeros and random fills
answer items of every task: at the library's defaults and at every step of the shipped
scale, or at `--levels`, where an item falls on a step as in a run. Shown are the three
that earn most, of few items by luck as well. `--json` holds every strategy.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import fnmatch
import functools
import itertools
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rg_env.items import worker_jobs
from rg_env.items.installed_library import read_library
from rg_env.tasks.sampler import mix_of_seed
from rg_env.tasks.scales import Scale, load_shipped
from rg_env.workers.worker_pool import WorkerPool
from tools.make_baselines import MEMORY_LIMIT_BYTES, cells_of
from tools.trivial_baselines.expected_scores import (
    Earned,
    ParamsOf,
    earned,
    guesses,
    make_items,
    shown_name,
)

SHOWN = 3


def at_level(scale: Scale | None, level: str) -> ParamsOf:
    if level == "default" or scale is None or scale.is_dead:
        return lambda seed: {}
    return lambda seed: scale.step_at(float(level), mix_of_seed(seed)).params


def _always(params: Mapping[str, Any], seed: int) -> Mapping[str, Any]:
    return params


def places(
    task: str, scale: Scale | None, levels: list[str] | None
) -> Iterator[tuple[str, ParamsOf]]:
    """Yield where a task is measured, in words, and the parameters of its items."""
    if levels is not None:
        for level in levels:
            yield level, at_level(scale, level)
        return
    for _, params, _ in cells_of(task, scale):
        yield json.dumps(params), functools.partial(_always, params)


def line(task: str, place: str, found: Mapping[str, Earned]) -> str:
    best = (
        f"{shown_name(name)} {one.mean:.2f} +- {one.error:.2f} of {one.items}"
        for name, one in itertools.islice(found.items(), SHOWN)
    )
    return f"{task} {place}: {', '.join(best) or 'no items'}"


async def run(options: argparse.Namespace) -> int:
    pool = WorkerPool(
        options.workers,
        memory_limit_bytes=MEMORY_LIMIT_BYTES,
        preload=worker_jobs.PRELOAD,
    )
    report = []
    try:
        library = await read_library(pool)
        scales = load_shipped().scales
        for task in library.tasks:
            if not any(fnmatch.fnmatch(task, pattern) for pattern in options.tasks):
                continue
            for place, params in places(task, scales.get(task), options.levels):
                key = f"trivial baselines/{options.key}/{task}/{place}"
                items = await make_items(pool, task, params, options.items, key)
                found = await earned(pool, items, guesses(items))
                most = next((one.mean for one in found.values()), 0.0)
                if most >= options.above:
                    print(line(task, place, found), flush=True)
                strategies = {n: dataclasses.asdict(one) for n, one in found.items()}
                report.append({"task": task, "level": place, "earned": strategies})
    finally:
        pool.close()
    if options.json:
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
    add("--items", type=int, default=24, help="of each task and level")
    add("--tasks", nargs="+", default=["*"], metavar="NAME", help="patterns allowed")
    add("--levels", nargs="+", type=level, help="default, or numbers in 0 to 1")
    add("--above", type=float, default=0.0, help="show what earns at least this")
    add("--key", default="", help="names the stream of items")
    add("--workers", type=int, default=2)
    add("--json", type=Path, metavar="FILE")
    return asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
