"""Right answers scored on a machine that is busy, and by workers that are killed.

    python benchmarks/busy_machine.py [--loops 16] [--kills 1000]

Three parts, each with workers of its own:

- busy: beside busy loops, the gold answer of an item of every task at level 1, and the
  slowest right answers that are known, each in a call of its own;
- killed: quick and slow right answers, while a worker that is chosen at
  random gets SIGKILL again and again;
- hang: a group of eight answers, one of which makes the scorer of a user's own task
  loop for ever, on the machine as it is.

Counted are answers with full credit, zeros, and answers that have no score. The exit
status is 1 if a right answer scored 0, or if the answer that hangs cost another one its
score.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rg_env.items import worker_jobs
from rg_env.items.entry_maker import is_unusable
from rg_env.items.group_scorer import GroupScorer, ScoringUnavailableError, TaskHandle
from rg_env.scoring.scoring_rules import ScoringRules
from rg_env.task_rules.table import solution
from rg_env.tasks.scales import load_shipped
from rg_env.workers.pool_errors import JobError
from rg_env.workers.worker_pool import WorkerPool
from tests.support.worker_attacks import find_descendants

NUM_WORKERS = 2
NUM_KILLED_WORKERS = 4
LONGEST_PAUSE_S = 0.2
"""Between two kills."""
DEADLINE_S = 5.0
MAKING_DEADLINE_S = 300.0
SEED = 20_250
OWN_TASKS = Path(__file__).parents[1] / "tests" / "support" / "own_tasks.py"

PARTS = ["busy", "killed", "hang"]
QUICK = ("chain_sum", "gcd", "basic_arithmetic")
ONE_HANGS = {"right": 1, "wrong": 6, "timeout": 1}

QUEENS = ("n_queens", {"n": 12, "min_remove": 2, "max_remove": 10}, 1663347094)
"""Of which it takes 0.5 s of CPU to build the data set."""

_QUARTICS = (
    "(-8*sin(x)**3*cos(x) + 4*sin(x)*cos(x))",
    "(8*cos(x)**4 - 8*cos(x)**2 + 1)",
)
ANTIDERIVATIVES = {
    63: "-6*sin(x)**2*cos(2)**2*cos(x)**2 - 12*sin(2)*sin(x)*cos(2)*cos(x)**3"
    " + 6*sin(2)*sin(x)*cos(2)*cos(x) - 6*sin(2)**2*cos(x)**4"
    " + 6*sin(2)**2*cos(x)**2 - 3*sin(2)**2/2",
    64: "(-(16*sin(x)**5 - 20*sin(x)**3 + 5*sin(x))*sin(3)"
    " + (16*cos(x)**5 - 20*cos(x)**3 + 5*cos(x))*cos(3))**2",
    227: f"(-{_QUARTICS[0]}*sin(7) + {_QUARTICS[1]}*cos(7))**2/2",
}
"""Seeds of intermediate_integration to right answers that take 0.4 to 0.8 s of CPU."""


class Right(NamedTuple):
    """Right answers to one entry."""

    handle: TaskHandle
    entry: Any
    answers: Sequence[str]


def made(pool: WorkerPool, task: str, params: Any, seeds: Sequence[int]) -> Any:
    """Make the entry of the first of the seeds that can be used."""
    for seed in seeds:
        call = (worker_jobs.make_entry, task, params, seed)
        try:
            return pool.call(*call, deadline_s=MAKING_DEADLINE_S)
        except JobError as error:
            if not is_unusable(error):
                raise
    raise AssertionError(f"{task}: no seed makes an item")


def slow_answers(pool: WorkerPool) -> list[Right]:
    task, params, seed = QUEENS
    entry = made(pool, task, params, [seed])
    found = [Right(TaskHandle(task, params), entry, [entry["answer"]])]
    for seed, answer in ANTIDERIVATIVES.items():
        entry = made(pool, "intermediate_integration", {}, [seed])
        found.append(Right(TaskHandle("intermediate_integration"), entry, [answer]))
    return found


def golds_at_level_1(pool: WorkerPool) -> list[Right]:
    """Return an answer that scores 1.0 to an item of every task where one is known."""
    described = pool.call(worker_jobs.describe_library, deadline_s=MAKING_DEADLINE_S)
    scales = load_shipped().scales
    found = []
    for task in described.tasks:
        params = dict(scales[task].steps[-1].params) if task in scales else {}
        entry = made(pool, task, params, range(SEED, SEED + 100))
        gold = solution(task, entry)
        if gold is not None:
            found.append(Right(TaskHandle(task, params), entry, [gold]))
    return found


async def outcomes(
    scorer: GroupScorer, wanted: Iterator[Right], places: int
) -> Counter[str]:
    """Score right answers, so many calls at once, and count what came of them."""
    counts: Counter[str] = Counter(right=0, zeros=0, unscored=0)

    async def score() -> None:
        for right in wanted:
            number = len(right.answers)
            try:
                scores = await scorer.score_group(
                    right.handle, right.entry, right.answers
                )
            except ScoringUnavailableError as error:
                counts["unscored"] += number
                counts[f"unscored: {error}"] += number
                continue
            for found in scores:
                is_right = found.value == 1.0
                counts["right" if is_right else "zeros"] += 1
                if not is_right:
                    counts[f"{right.handle.task}: {found.outcome}"] += 1

    await asyncio.gather(*(score() for _ in range(places)))
    return counts


@contextlib.contextmanager
def busy_loops(number: int) -> Iterator[None]:
    with contextlib.ExitStack() as running:
        for _ in range(number):
            loop = [sys.executable, "-c", "while True: pass"]
            process = running.enter_context(subprocess.Popen(loop))
            running.callback(process.kill)
        yield


def busy(rights: Sequence[Right], loops: int) -> Counter[str]:
    with contextlib.closing(new_pool(NUM_WORKERS)) as pool, busy_loops(loops):
        scorer = GroupScorer(pool, DEADLINE_S, ScoringRules())
        return asyncio.run(outcomes(scorer, iter(rights), NUM_WORKERS))


class Killer(threading.Thread):
    """Kills workers of the fork server of a pool, at random moments."""

    def __init__(self, fork_server: int, kills: int) -> None:
        super().__init__(daemon=True)
        self._fork_server = fork_server
        self.left = kills

    def run(self) -> None:
        chance = random.Random(SEED)
        while self.left:
            time.sleep(chance.uniform(0, LONGEST_PAUSE_S))
            workers = sorted(find_descendants(self._fork_server))
            if workers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(chance.choice(workers), signal.SIGKILL)
                    self.left -= 1


def killed(rights: Sequence[Right], kills: int) -> Counter[str]:
    with contextlib.closing(new_pool(NUM_KILLED_WORKERS)) as pool:
        killer = Killer(pool.call(os.getppid, deadline_s=MAKING_DEADLINE_S), kills)
        going_on = itertools.takewhile(lambda _: killer.left, itertools.cycle(rights))
        killer.start()
        scorer = GroupScorer(pool, DEADLINE_S, ScoringRules())
        counts = asyncio.run(outcomes(scorer, going_on, 2 * NUM_KILLED_WORKERS))
        counts["workers that died under a call"] = pool.deaths
        return counts


def hang() -> Counter[str]:
    """Score a right answer, six wrong ones and one that hangs; return the outcomes."""
    with contextlib.closing(new_pool(1, (str(OWN_TASKS),))) as pool:
        entry = made(pool, "scorer_hangs", {}, range(SEED, SEED + 100))
        answers = [" " * n + entry["answer"] for n in range(7)]
        answers.insert(3, "loop")
        scorer = GroupScorer(pool, DEADLINE_S, ScoringRules())
        handle = TaskHandle("scorer_hangs", task_modules=(str(OWN_TASKS),))
        scores = asyncio.run(scorer.score_group(handle, entry, answers))
        return Counter(score.outcome for score in scores)


def new_pool(workers: int, task_modules: Sequence[str] = ()) -> WorkerPool:
    """Return a pool whose workers have the library loaded."""
    pool = WorkerPool(workers, preload=worker_jobs.preload_of(task_modules))
    pool.call(os.getpid, deadline_s=MAKING_DEADLINE_S)
    return pool


def report(name: str, counts: Counter[str], took_s: float) -> None:
    print(f"{name} ({took_s:.1f} s)")
    for word, number in counts.items():
        print(f"  {number:6} {word}")


def right_answers() -> tuple[list[Right], list[Right]]:
    """Return the slow right answers and the gold answers of all tasks."""
    with contextlib.closing(new_pool(1)) as pool:
        return slow_answers(pool), golds_at_level_1(pool)


def main() -> int:
    """Run the parts and print what came of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS)
    parser.add_argument("--loops", type=int, default=16)
    parser.add_argument("--kills", type=int, default=1000)
    options = parser.parse_args()
    slow, golds = ([], []) if options.parts == ["hang"] else right_answers()
    quick = [right for right in golds if right.handle.task in QUICK]
    parts = {
        "busy": lambda: busy([*slow, *golds], options.loops),
        "killed": lambda: killed([*slow, *quick], options.kills),
        "hang": hang,
    }
    faults = 0
    for name in options.parts:
        began = time.monotonic()
        counts = parts[name]()
        report(name, counts, time.monotonic() - began)
        faults += counts["zeros"] + (name == "hang" and counts != ONE_HANGS)
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
