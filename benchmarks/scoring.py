"""Scoring in a worker process beside scoring in this one, in the same run.

    python benchmarks/scoring.py [--groups 300] [--scores 100000] [--json FILE]

Three measurements:

- What a group of 8 costs through the pool, beside the same calls made directly here:
  A B A B over every task, medians. A direct call is what the original did; it has no
  deadline and nothing between the model's text and the run's process.
- How long a worker needs to be ready again after it was killed, beside a cold start.
- Memory of the workers over many scores.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rg_env.items import worker_jobs
from rg_env.pool.pool_errors import DeadlineExceeded
from rg_env.pool.worker_pool import WorkerPool
from rg_env.tasks import library
from rg_env.tasks.sampler import entry_seed
from rg_env.tasks.solutions import solution

GROUP = 8
DEADLINE_S = 30.0
SLOW_TASKS = frozenset({"intermediate_integration"})
"""Their scorer takes longer than any overhead, so they would only add noise."""


def _answers(task: str, entry: dict[str, Any]) -> list[str]:
    """Return a group of distinct honest answers: the gold one and wrong ones."""
    gold = solution(task, entry) or "?"
    return [gold, *(f"{gold} {i}" for i in range(1, GROUP))]


def _ms(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - began)


def overhead(pool: WorkerPool, groups: int) -> dict[str, float]:
    """Measure groups through the pool and directly, in turn."""
    tasks = [task for task in library.describe().tasks if task not in SLOW_TASKS]
    through: list[float] = []
    direct: list[float] = []
    for i in range(groups):
        task = tasks[i % len(tasks)]
        seed = entry_seed("evaluation", "benchmark", i)
        entry = pool.call(worker_jobs.make_entry, task, {}, seed, deadline_s=DEADLINE_S)
        call = (task, {}, entry, _answers(task, entry))
        for _ in range(2):  # the first of each builds the dataset
            piped = _ms(
                lambda c=call: pool.call(
                    worker_jobs.score_answers, *c, deadline_s=DEADLINE_S
                )
            )
            here = _ms(lambda c=call: worker_jobs.score_answers(*c))
        through.append(piped)
        direct.append(here)
    extra = [a - b for a, b in zip(through, direct, strict=True)]
    return {
        "groups": groups,
        "direct_median_ms": statistics.median(direct),
        "pool_median_ms": statistics.median(through),
        "overhead_median_ms": statistics.median(extra),
        "overhead_p95_ms": statistics.quantiles(extra, n=20)[-1],
    }


def restart(rounds: int = 5) -> dict[str, float]:
    """Measure a cold start, and the answer after a worker was killed."""
    cold: list[float] = []
    again: list[float] = []
    call = (worker_jobs.make_entry, "gcd", {}, 1)
    for _ in range(rounds):
        pool = WorkerPool(1, preload=worker_jobs.PRELOAD)
        try:
            cold.append(_ms(lambda p=pool: p.call(*call, deadline_s=DEADLINE_S)))
            try:
                pool.call(time.sleep, 60, deadline_s=0.05)
            except DeadlineExceeded:
                again.append(_ms(lambda p=pool: p.call(*call, deadline_s=DEADLINE_S)))
        finally:
            pool.close()
    return {
        "cold_start_median_ms": statistics.median(cold),
        "after_kill_median_ms": statistics.median(again),
        "ratio": statistics.median(again) / statistics.median(cold),
    }


def _children_mib() -> float:
    """Return the resident memory of the workers, the fork server included."""
    total_kib = 0
    parent_of = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            text = status.read_text()
        except OSError:
            continue  # it ended meanwhile
        fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        parent_of[int(fields["Pid"])] = (
            int(fields["PPid"]),
            int(fields.get("VmRSS", "0 kB").split()[0]),
        )
    own = {int(Path("/proc/self").resolve().name)}
    for _ in range(4):  # fork server, workers
        own |= {pid for pid, (parent, _) in parent_of.items() if parent in own}
    for pid in own - {int(Path("/proc/self").resolve().name)}:
        total_kib += parent_of[pid][1]
    return total_kib / 1024


def memory(pool: WorkerPool, scores: int) -> dict[str, Any]:
    """Measure the workers' memory while they give many scores over all tasks."""
    tasks = [task for task in library.describe().tasks if task not in SLOW_TASKS]
    calls = []
    for task in tasks:
        entry = pool.call(worker_jobs.make_entry, task, {}, 7, deadline_s=DEADLINE_S)
        calls.append((task, {}, entry, _answers(task, entry)))
    points = []
    done = 0
    step = max(1, scores // 10)
    while done < scores:
        for call in calls:
            pool.call(worker_jobs.score_answers, *call, deadline_s=DEADLINE_S)
            done += GROUP
            if done // step > len(points):
                points.append((done, round(_children_mib(), 1)))
                sys.stderr.write(f"\r{done} scores, workers hold {points[-1][1]} MiB ")
                sys.stderr.flush()
    sys.stderr.write("\n")
    return {"scores": done, "mib_by_scores": points}


def main() -> int:
    """Run all three and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--groups", type=int, default=312)
    parser.add_argument("--scores", type=int, default=100_000)
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    found: dict[str, Any] = {"restart": restart()}
    pool = WorkerPool(2, preload=worker_jobs.PRELOAD)
    try:
        found["overhead"] = overhead(pool, options.groups)
        found["memory"] = memory(pool, options.scores)
    finally:
        pool.close()
    for title, numbers in found.items():
        print(title)
        for name, value in numbers.items():
            shown = f"{value:.2f}" if isinstance(value, float) else value
            print(f"  {name:<22} {shown}")
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
