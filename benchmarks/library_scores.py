"""Completions that `rg_env.score` scores in a second, beside the library in process.

    python benchmarks/library_scores.py [--items 4] [--rounds 3] [--tasks PATTERN ...]

Groups of eight completions of items of every task: the right answer, and those of other
items of the task. Three contestants score all of them, one after
the other, in each round:

- library: `dataset.score_answer` of reasoning-gym, in this process, of the bare answer;
- one: `score`, one call after the other, so that one worker is busy;
- two: `score` in two threads, so that two workers are.

What is told are ratios within a round, since machines differ: of all completions of a
second, and of the CPU time, which a busy machine changes little. At first a new process
makes an item and scores it; its CPU time and that of its children are told.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import psutil  # noqa: E402
import reasoning_gym  # noqa: E402

from rg_env import Item, Tasks, score  # noqa: E402

GROUP_SIZE = 8
FIRST = """
import json, os, time
began = time.perf_counter()
from rg_env import Item, score
from rg_env.items.group_scorer import shared_pool
(result,) = score(Item("gcd", {}, 7), ["<answer>1</answer>"])
assert result.value is not None
took_s = time.perf_counter() - began
own_s = time.process_time()
shared_pool().close()
times = os.times()
print(json.dumps([own_s, times.children_user + times.children_system, took_s]))
"""


class Group(NamedTuple):
    """An item, its answers and the library's own scorer of them."""

    item: Item
    answers: list[str]
    scorer: Callable[[str, object], float]


def first_score() -> None:
    """Tell what a new process pays until it has its first score."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        check=True,
    )
    own_s, workers_s, took_s = json.loads(done.stdout)
    print(
        f"import to first score: {own_s:.2f} s of CPU in the caller and"
        f" {workers_s:.2f} s in its workers, in {took_s:.2f} s"
    )


def make_groups(patterns: Sequence[str], items_per_task: int) -> list[Group]:
    by_task: dict[str, list[Item]] = defaultdict(list)
    for item in Tasks(*patterns).evaluation(items_per_task):
        by_task[item.task].append(item)
    groups = []
    for task, items in by_task.items():
        golds = [gold for item in items if (gold := item.gold) is not None]
        for number, item in enumerate(items):
            dataset = reasoning_gym.create_dataset(
                task, seed=item.seed, size=1, **item.params
            )
            others = itertools.islice(itertools.cycle(golds), number, None)
            answers = list(itertools.islice(others, GROUP_SIZE))
            if answers:
                groups.append(Group(item, answers, dataset.score_answer))
    return groups


def by_library(group: Group) -> None:
    for answer in group.answers:
        with contextlib.suppress(Exception):  # some scorers raise on wrong answers
            group.scorer(answer, group.item.entry)


def by_us(group: Group) -> None:
    texts = [f"<think>so</think><answer>{answer}</answer>" for answer in group.answers]
    assert None not in [result.value for result in score(group.item, texts)]


class Times(NamedTuple):
    """Seconds that all groups take, of the clock and of CPU time."""

    wall_s: float
    cpu_s: float


def cpu_s() -> float:
    """Return the CPU time of this process and of all its workers."""
    workers = psutil.Process().children(recursive=True)
    return time.process_time() + sum(sum(p.cpu_times()[:2]) for p in workers)


def timed(
    score_group: Callable[[Group], None], groups: Sequence[Group], threads: int
) -> Times:
    with ThreadPoolExecutor(threads) as pool:
        began, before = time.perf_counter(), cpu_s()
        list(pool.map(score_group, groups))
        return Times(time.perf_counter() - began, cpu_s() - before)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--items", type=int, default=4, help="items of each task")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tasks", nargs="*", default=[], help="names or patterns")
    options = parser.parse_args()
    first_score()
    groups = make_groups(options.tasks, options.items)
    count = GROUP_SIZE * len(groups)
    contestants = {"library": (by_library, 1), "one": (by_us, 1), "two": (by_us, 2)}
    for how, threads in contestants.values():  # what they load at first is not counted
        timed(how, groups[:: options.items], threads)
    ratios: dict[str, list[float]] = defaultdict(list)
    for number in range(options.rounds):
        found = {name: timed(how, groups, n) for name, (how, n) in contestants.items()}
        library, one, two = (found[name] for name in contestants)
        ratios["completions a second, one worker"].append(library.wall_s / one.wall_s)
        ratios["completions a second, two workers"].append(library.wall_s / two.wall_s)
        ratios["CPU time"].append(one.cpu_s / library.cpu_s)
        shown = ", ".join(
            f"{name} {count / took.wall_s:.0f} completions a second with"
            f" {1000 * took.cpu_s / count:.2f} ms of CPU each"
            for name, took in found.items()
        )
        print(f"round {number + 1}: {shown}", flush=True)
    print(f"{count} completions of {len(groups)} items; of the library's own:")
    for name, found_ratios in ratios.items():
        print(f"  {name}: {statistics.median(found_ratios):.2f}")


if __name__ == "__main__":
    main()
