"""What scoring costs beside the library in process, and what a bad machine does to it.

    python benchmarks/scoring.py [--parts cost busy killed]

    cost     completions per second and CPU time of `score`, with one worker busy and
             with two, beside the library's `score_answer` in this process; and what a
             new process needs from its imports to its first score
    busy     right answers beside 16 busy loops: the gold answer of an item of every
             task at level 1, and the slowest right answers that are known
    killed   right answers while 1,000 workers are killed at random moments

The exit status is 1 if a right answer scored 0. Ratios are taken within a round, since
a machine's speed varies.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import psutil  # noqa: E402
import reasoning_gym  # noqa: E402

from rg_env import Item, Tasks, score  # noqa: E402

GROUP_SIZE, ROUNDS, LOOPS, KILLS, LONGEST_PAUSE_S = 8, 3, 16, 1000, 0.2

QUEENS = Item("n_queens", {"n": 12, "min_remove": 2, "max_remove": 10}, 1663347094)
"""Building its dataset takes 0.5 s of CPU time."""

ANTIDERIVATIVES = {
    64: "(-(16*sin(x)**5 - 20*sin(x)**3 + 5*sin(x))*sin(3)"
    " + (16*cos(x)**5 - 20*cos(x)**3 + 5*cos(x))*cos(3))**2"
}
"""Seed of intermediate_integration, and a right answer that takes 0.5 s."""

FIRST = """
import json, os, psutil, time
from rg_env import Item, score
(result,) = score(Item("gcd", {}, 7), ["<answer>1</answer>"])
assert result.value is not None
workers = psutil.Process().children(recursive=True)
print(json.dumps([time.process_time(), sum(sum(p.cpu_times()[:2]) for p in workers)]))
"""


class Group(NamedTuple):
    """Answers to one item."""

    item: Item
    answers: Sequence[str]


def scored(group: Group) -> Counter[str]:
    """Score a group with `score`; return the number of each outcome."""
    texts = [f"<answer>{answer}</answer>" for answer in group.answers]
    results = score(group.item, texts)
    return Counter("right" if r.value == 1.0 else r.outcome for r in results)


def all_scored(groups: Iterable[Group], threads: int) -> Counter[str]:
    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(scored, groups), Counter())


def right_answers() -> list[Group]:
    """Return a right answer to an item of every task, the slowest ones first."""
    slow = [Group(QUEENS, [str(QUEENS.gold)])]
    for seed, answer in ANTIDERIVATIVES.items():
        slow.append(Group(Item("intermediate_integration", {}, seed), [answer]))
    items = Tasks().evaluation(1, seed=20_250, level=1.0)
    return slow + [Group(item, [item.gold]) for item in items if item.gold is not None]


# -- cost ------------------------------------------------------------------------------


def by_library(groups: Sequence[Group]) -> Callable[[], object]:
    """Return what scores groups with the library's scorers, in this process."""
    scorers = [
        reasoning_gym.create_dataset(
            group.item.task, seed=group.item.seed, size=1, **group.item.params
        ).score_answer
        for group in groups
    ]

    def work() -> None:
        for group, scorer in zip(groups, scorers, strict=True):
            for answer in group.answers:
                with contextlib.suppress(Exception):  # some raise on wrong answers
                    scorer(answer, group.item.entry)

    return work


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds that work takes, and those of CPU time with all workers."""

    def cpu_s() -> float:
        workers = psutil.Process().children(recursive=True)
        return time.process_time() + sum(sum(p.cpu_times()[:2]) for p in workers)

    began, before = time.perf_counter(), cpu_s()
    work()
    return time.perf_counter() - began, cpu_s() - before


def groups_of_answers(items_per_task: int) -> list[Group]:
    """Return groups of the right answer of an item and those of others of its task."""
    found = []
    items = Tasks().evaluation(items_per_task)
    for _, of_task in itertools.groupby(items, lambda item: item.task):
        of_task = list(of_task)
        golds = [item.gold for item in of_task if item.gold is not None]
        for number, item in enumerate(of_task if golds else []):
            others = itertools.islice(itertools.cycle(golds), number, None)
            found.append(Group(item, list(itertools.islice(others, GROUP_SIZE))))
    return found


def cost() -> int:
    done = subprocess.run(
        [sys.executable, "-c", FIRST],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        check=True,
    )
    own_s, workers_s = json.loads(done.stdout)
    print(f"first score: {own_s:.2f} s of CPU, workers {workers_s:.2f} s", flush=True)
    groups = groups_of_answers(4)
    contestants = {
        "library": by_library(groups),
        "one": lambda: all_scored(groups, 1),
        "two": lambda: all_scored(groups, 2),
    }
    for work in contestants.values():  # what is loaded at first does not count
        work()
    ratios: dict[str, list[float]] = {}
    count = sum(len(group.answers) for group in groups)
    for number in range(1, ROUNDS + 1):
        found = {name: timed(work) for name, work in contestants.items()}
        (library_s, library_cpu_s), one, two = found.values()
        for name, ratio in {
            "completions per second, one worker": library_s / one[0],
            "completions per second, two workers": library_s / two[0],
            "CPU time": one[1] / library_cpu_s,
        }.items():
            ratios.setdefault(name, []).append(ratio)
        speeds = [f"{name} {count / took_s:.0f}" for name, (took_s, _) in found.items()]
        print(f"round {number}, completions per second: {', '.join(speeds)}")
    for name, of_rounds in ratios.items():
        print(f"{name}, ours / library's: {statistics.median(of_rounds):.2f}")
    return 0


# -- a machine that fails --------------------------------------------------------------


def false_zeros(name: str, counts: Counter[str]) -> int:
    """Print what was counted; return how many right answers scored 0."""
    print(f"{name}: {dict(counts)}", flush=True)
    return counts.total() - counts["right"] - counts["unscored"]


def busy() -> int:
    groups = right_answers()
    with contextlib.ExitStack() as running:
        for _ in range(LOOPS):
            loop = [sys.executable, "-c", "while True: pass"]
            running.callback(running.enter_context(subprocess.Popen(loop)).kill)
        return false_zeros(f"{LOOPS} busy loops", all_scored(groups, 2))


def killed() -> int:
    groups, left = right_answers(), KILLS
    quick = groups[:3] + [g for g in groups if g.item.task in ("gcd", "chain_sum")]
    chance = random.Random(1)

    def kill() -> None:
        nonlocal left
        while left:
            time.sleep(chance.uniform(0, LONGEST_PAUSE_S))
            servers = psutil.Process().children()
            workers = [w for server in servers for w in server.children()]
            with contextlib.suppress(psutil.NoSuchProcess):
                if workers:
                    chance.choice(workers).kill()
                    left -= 1

    killer = threading.Thread(target=kill)
    killer.start()
    counts: Counter[str] = Counter()
    while left:
        counts += all_scored(4 * quick, 4)
    killer.join()
    return false_zeros(f"{KILLS} workers killed", counts)


PARTS = {"cost": cost, "busy": busy, "killed": killed}


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    options = parser.parse_args()
    return int(sum(PARTS[name]() for name in options.parts) > 0)


if __name__ == "__main__":
    sys.exit(main())
