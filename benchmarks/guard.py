"""What bad scorers do to four ways of calling them, `guard` among them.

    python benchmarks/guard.py [--trl PYTHON] [--verl PYTHON] [--pebble PYTHON]

PYTHON is an interpreter that has the package. The ways, each with a limit of 2 s:

    TRL     in the trainer's process, under the timeout of math-verify, a signal, as
            `accuracy_reward` has it in the main thread; a timeout or an error becomes 0
            here as it becomes False in `math_verify.verify`
    verl    `verl.utils.reward_score.math_verify.compute_score` itself, with this scorer
            in the place of what its pool of four processes runs; from eight threads
    pebble  `ProcessPool(2)`; an error is no score
    guard   `cpu_seconds=2`, and 6 s of wall time

One completion in eight meets the bad scorer, and none deserves a 0. A cell is the
completions per second and what was wrong: completions with a 0, good ones without a
score, rewards that are no number, a program that hangs, dies or does not exit. Each is
a program of its own with 3 GiB of memory, ended after 40 s; the fork bomb stops at 64
processes, and output goes to /dev/null.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LIMIT_S = 2
WALL_S = 6
MAX_S = 40
MEMORY_BYTES = 3 * 2**30
COMPLETIONS = 48
FEW = 8
EVERY = 8
LOOPS = 16
THREADS = 8
BUSY = "16 busy loops beside"
NONE = "none is bad"
HARD = "(10**40 + 121) * (3 * 10**40 + 11)"  # primes
SLOW = "e = time.process_time() + 0.3\nwhile time.process_time() < e: pass"
DEEP = """
sys.setrecursionlimit(10**8)
def deep(x): return list(map(deep, [x]))
deep(0)"""
FORK_BOMB = """
pid = os.getpid()
[os.fork() for _ in range(6)]
time.sleep(20)
pid == os.getpid() or os._exit(0)"""
ROWS = {
    NONE: "",
    "loop in C": "sum(range(10**15))",
    "sympy without an end": f"import sympy; sympy.factorint({HARD})",
    "os._exit": "os._exit(0)",
    "fork bomb": FORK_BOMB,
    "20 GB": "[bytearray(2**28) for _ in range(80)]",
    "own SIGALRM handler": "signal.signal(signal.SIGALRM, print)\nwhile True: pass",
    BUSY: SLOW,
    "deep recursion": DEEP,
    "output without an end": "while True: print('x' * 10**6)",
    "sleep": "time.sleep(10**6)",
    "thread without an end": "threading.Thread(target=lambda: pow(9, 9**9)).start()",
    "NaN": "result = math.nan",
}
NAMES = "import math, os, re, signal, sys, threading, time\nresult = 1.0\n"


def score(row: str, text: str) -> Any:
    """The scorer: bad where the text says so, else some 0.2 ms of work."""
    if text != "bad":
        return float(sum(range(10_000)) > 0)
    names: dict[str, Any] = {}
    exec(NAMES + ROWS[row], names)  # noqa: S102 - of the table
    return names["result"]


def by_trl(row: str, texts: Sequence[str]) -> Iterator[list[Any]]:
    from math_verify.errors import TimeoutException
    from math_verify.utils import timeout

    limited = timeout(timeout_seconds=LIMIT_S)(score)

    def verified(text: str) -> Any:
        try:
            return limited(row, text)
        except (Exception, TimeoutException):  # noqa: BLE001 - as math-verify does
            return 0.0

    yield [verified("good")]
    yield [verified(text) for text in texts]


def in_process_of_verl(boxed: str, text: str) -> Any:
    return score(boxed.removeprefix("\\boxed{").removesuffix("}"), text)


def by_verl(row: str, texts: Sequence[str]) -> Iterator[list[Any]]:
    from verl.utils.reward_score import math_verify

    math_verify._verify_in_subprocess = in_process_of_verl

    def call(text: str, limit_s: float = LIMIT_S) -> Any:
        return math_verify.compute_score(text, row, timeout=limit_s)

    with ThreadPoolExecutor(THREADS) as threads:
        yield [*threads.map(call, ["good"] * THREADS, [60] * THREADS)]
        yield [*threads.map(call, texts)]


def by_pebble(row: str, texts: Sequence[str]) -> Iterator[list[Any]]:
    from pebble import ProcessPool

    with ProcessPool(2) as pool:
        yield [pool.schedule(score, [row, "good"]).result() for _ in range(THREADS)]
        calls = [pool.schedule(score, [row, text], timeout=LIMIT_S) for text in texts]
        yield [None if call.exception() else call.result() for call in calls]


def by_guard(row: str, texts: Sequence[str]) -> Iterator[list[Any]]:
    sys.path.append(str(ROOT))
    from rg_env import guard

    reward = guard(f"{__file__}:score", cpu_seconds=LIMIT_S, wall_seconds=WALL_S)

    async def scores() -> list[Any]:
        return await asyncio.gather(*(reward.acall(row, text) for text in texts))

    yield [reward(row, "good") for _ in range(THREADS)]
    yield asyncio.run(scores())


WAYS = {"TRL": by_trl, "verl": by_verl, "pebble": by_pebble, "guard": by_guard}


def run_cell(way: str, row: str, report: str) -> None:
    """Run one cell, and write the seconds, and the scores that have come."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    bad = ["good"] * (EVERY - 1) + ["bad"]
    texts = bad * (COMPLETIONS // EVERY)
    texts = {BUSY: ["bad"] * FEW, NONE: texts * 10}.get(row, texts)
    steps = WAYS[way](row, texts)
    next(steps)
    loop = [sys.executable, "-c", "while True: pass"]
    number = LOOPS * (row == BUSY)
    loops = [subprocess.Popen(loop) for _ in range(number)]
    begin_s = time.perf_counter()
    scores = next(steps)
    seconds = time.perf_counter() - begin_s
    for process in loops:
        process.kill()
    is_good = [text == "good" or row == BUSY for text in texts]
    lost = sum(s is None and good for s, good in zip(scores, is_good, strict=True))
    Path(report).write_text(json.dumps([seconds, scores, lost]))
    next(steps, None)  # ends its processes


def cell(way: str, row: str, python: str) -> str:
    """Return what happened, in a few words."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [python, __file__, "--cell", way, row, str(report)]
        how: Any = {"stdout": subprocess.DEVNULL, "start_new_session": True}
        program = subprocess.Popen(command, **how)
        try:
            end = f"dies with status {program.wait(MAX_S)}"
        except subprocess.TimeoutExpired:
            end = "hangs"
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        program.wait()
        if not report.exists():
            return end
        seconds, scores, lost = json.loads(report.read_text())
    odd = sum(value != value for value in scores)
    faults = {"zeros": scores.count(0), "lost": lost, "NaN": odd}
    notes = [f"{number} {what}" for what, number in faults.items() if number]
    notes += ["does not exit"] * (end == "hangs")
    return ", ".join([f"{len(scores) / seconds:.1f}/s", *notes])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for way in WAYS:
        parser.add_argument(f"--{way.lower()}", default=sys.executable)
    parser.add_argument("--rows", nargs="*", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--cell", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.cell:
        sys.exit(run_cell(*given.cell))
    print(f"| Bad scorer | {' | '.join(WAYS)} |\n|---|{'---|' * len(WAYS)}")
    for row in given.rows:
        cells = [cell(way, row, getattr(given, way.lower())) for way in WAYS]
        print(f"| {row} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
