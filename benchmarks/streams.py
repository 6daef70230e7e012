"""Chance that repeats: are streams disjoint, identical and without repeated questions?

    python benchmarks/streams.py [--draws 2000000] [--items 1000] [--json FILE]

Three counts, over all tasks with random levels:

- Seeds shared between shards, or between training and evaluation, in so many draws.
- Different streams among so many items, made under five hash seeds and with one, two
  and three workers, each in a process of its own that makes another number ahead.
- RunItems that a task asks twice in its stream: of the draws as they fall, beside
  what is asked after repeats were avoided.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rich.console import Console
from rich.progress import track

from rg_env.answers.scoring_rules import ScoringRules
from rg_env.items import worker_jobs
from rg_env.items.entry_maker import EntryMaker
from rg_env.items.item_source import ItemSource
from rg_env.items.run_difficulty import prepare_difficulty
from rg_env.pool.worker_pool import WorkerPool
from rg_env.tasks.curriculum import Curriculum
from rg_env.tasks.item_stream import ItemStream
from rg_env.tasks.level_settings import LevelSetting
from rg_env.tasks.sampler import Sampler, evaluation_seed
from rg_env.tasks.selection import build_selection

SEED = 42
HASH_SEEDS = ("0", "1", "7", "1234", "random")
NUM_WORKERS = (1, 2, 3)
SHARDS = 8
DEADLINE_S = 120.0


# -- draws -----------------------------------------------------------------------------


def shared_seeds(draws: int) -> dict[str, int]:
    """Count the seeds that shards, or the splits, have in common."""
    weights = [1.0] * 105
    seen: set[int] = set()
    shared = 0
    for shard in track(range(SHARDS), f"{draws} draws", console=Console(stderr=True)):
        sampler = Sampler(weights, SEED, shard_index=shard, num_shards=SHARDS)
        for _ in range(draws // SHARDS):
            seed = sampler.seed_of(sampler.next_draw().index)
            shared += seed in seen
            seen.add(seed)
    of_evaluation = {
        evaluation_seed(eval_seed, f"task {task}", {}, number)
        for eval_seed in (SEED, 123)
        for task in range(105)
        for number in range(100)
    }
    return {
        "draws": len(seen) + shared,
        "shared_between_shards": shared,
        "shared_with_evaluation": len(seen & of_evaluation),
    }


# -- items -----------------------------------------------------------------------------


async def open_stream(
    pool: WorkerPool,
    num_workers: int,
    mode: LevelSetting,
    tasks: Sequence[str] | None = None,
) -> ItemSource:
    """Return the stream that an environment with these settings asks."""
    library = await pool.run(worker_jobs.describe_library, deadline_s=DEADLINE_S)
    choices = build_selection(library, tasks=tasks)
    names = [choice.task for choice in choices]
    difficulty = await prepare_difficulty(
        pool, names, library.tasks, mode, {}, Curriculum(0.7)
    )
    sampler = Sampler([choice.weight for choice in choices], SEED)
    stream = ItemStream(sampler, choices, difficulty)
    maker = EntryMaker(pool, stream, making_at_once=num_workers, deadline_s=DEADLINE_S)
    return ItemSource(
        stream,
        maker,
        lookahead=7 * num_workers,
        scoring_deadline_s=DEADLINE_S,
        rules=ScoringRules(),
    )


async def stream_digest(num_workers: int, items: int) -> str:
    """Return the digest of the first items of a stream: what each is and says."""
    hashed = hashlib.sha256()
    pool = WorkerPool(num_workers, preload=worker_jobs.PRELOAD)
    try:
        source = await open_stream(pool, num_workers, "random")
        for _ in range(items):
            made = await source.next_item()
            handle, entry = made.handle, made.entry
            row = [handle.task, handle.index, handle.seed, handle.level]
            row += [entry["question"], entry["answer"]]
            hashed.update(json.dumps(row).encode())
        source.cancel_ahead()
    finally:
        pool.close()
    return hashed.hexdigest()


def different_streams(items: int) -> dict[str, Any]:
    """Make one stream in many ways and count how many streams that gave."""
    ways = [(h, n) for h in HASH_SEEDS for n in NUM_WORKERS]
    digests: Counter[str] = Counter()
    for hash_seed, num_workers in track(
        ways, f"{items} items in {len(ways)} ways", console=Console(stderr=True)
    ):
        child = subprocess.run(
            [sys.executable, __file__, "--digest", str(num_workers), str(items)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        digests[child.stdout.strip()] += 1
    return {"items": items, "ways": len(ways), "different_streams": len(digests)}


# -- repeats ---------------------------------------------------------------------------


async def repeats(items_per_task: int) -> dict[str, dict[str, float]]:
    """Count repeated questions of each task, as drawn and as asked."""
    found: dict[str, dict[str, float]] = {}
    pool = WorkerPool(2, preload=worker_jobs.PRELOAD)
    try:
        library = await pool.run(worker_jobs.describe_library, deadline_s=DEADLINE_S)
        for task in track(
            list(library.tasks), "repeats by task", console=Console(stderr=True)
        ):
            source = await open_stream(pool, 2, None, [task])
            asked: Counter[str] = Counter()
            for _ in range(items_per_task):
                asked[(await source.next_item()).entry["question"]] += 1
            source.cancel_ahead()
            replaced = source.events["repeats_avoided"]
            repeated = source.events["repeats_asked"]
            found[task] = {
                "drawn_again": (replaced + repeated) / (items_per_task + replaced),
                "asked_again": 1 - len(asked) / items_per_task,
            }
    finally:
        pool.close()
    return found


def main() -> int:
    """Run all three and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=2_000_000)
    parser.add_argument("--items", type=int, default=1_000)
    parser.add_argument("--items_per_task", type=int, default=300)
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--digest", nargs=2, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.digest:
        print(asyncio.run(stream_digest(*options.digest)))
        return 0
    found: dict[str, Any] = {}
    if options.draws:
        found["draws"] = shared_seeds(options.draws)
        print(found["draws"], flush=True)
    if options.items:
        found["items"] = different_streams(options.items)
        print(found["items"], flush=True)
    if options.items_per_task:
        found["repeats"] = asyncio.run(repeats(options.items_per_task))
        print("share of questions a task repeats, as drawn and as asked:")
        for task, row in found["repeats"].items():
            if row["drawn_again"] > 0:
                shown = f"{row['drawn_again']:7.1%} {row['asked_again']:7.1%}"
                print(f"  {task:<32} {shown}")
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
