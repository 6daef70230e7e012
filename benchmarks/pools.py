"""Compare our worker pool with pebble and loky, side by side, in one run.

    python benchmarks/pools.py            # all that can be imported
    python benchmarks/pools.py pebble     # one of them

Every figure is taken in a program of its own (this file, started again), because
three of the questions are about what a pool does to the program that owns it: is
its main script imported again, what is left when it is killed. pebble runs on a
forkserver context that preloads the same modules as our workers; loky has no
deadline of its own, so there a late call ends with the whole executor, and it cannot
preload, so its cold start has imported nothing.

A figure of "-" means that the pool has no such thing, "lost" that the call or its
neighbours came back with an error or not at all.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import importlib.util
import json
import math
import multiprocessing
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
PRELOAD = "reasoning_gym"
IMPORTS_FILE = os.environ.get("POOLS_IMPORTS_FILE")
NO_DEADLINE_S = 60.0
MILLISECOND = 1e3

if IMPORTS_FILE:
    with Path(IMPORTS_FILE).open("a") as imports_file:
        print(os.getpid(), __name__, file=imports_file)


class OurPool:
    """rg_env.pool.worker_pool.WorkerPool."""

    def __init__(self, num_workers: int) -> None:
        sys.path.append(str(REPOSITORY))
        from rg_env.pool.worker_pool import WorkerPool

        self._pool = WorkerPool(num_workers, preload=[PRELOAD])
        self.close = self._pool.close

    def submit(
        self, job: Callable[..., Any], *args: Any, deadline_s: float = NO_DEADLINE_S
    ) -> concurrent.futures.Future[Any]:
        return self._pool.submit(job, *args, deadline_s=deadline_s)


class PebblePool:
    """pebble.ProcessPool on a preloaded forkserver."""

    def __init__(self, num_workers: int) -> None:
        import pebble
        from pebble.common import CONSTS

        CONSTS.term_timeout = 0.1  # its default lets a hang live 3 s longer
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([PRELOAD])
        self._pool = pebble.ProcessPool(max_workers=num_workers, context=context)

    def submit(
        self, job: Callable[..., Any], *args: Any, deadline_s: float = NO_DEADLINE_S
    ) -> concurrent.futures.Future[Any]:
        return self._pool.schedule(job, args=args, timeout=deadline_s)

    def close(self) -> None:
        self._pool.stop()
        self._pool.join()


class LokyPool:
    """loky's reusable executor; a deadline can only be met by killing all of it."""

    def __init__(self, num_workers: int) -> None:
        import loky

        self._get = lambda: loky.get_reusable_executor(
            max_workers=num_workers, env={"PYTHONHASHSEED": "0"}
        )

    def submit(
        self, job: Callable[..., Any], *args: Any, deadline_s: float = NO_DEADLINE_S
    ) -> concurrent.futures.Future[Any]:
        future = self._get().submit(job, *args)
        if deadline_s < NO_DEADLINE_S:
            late = concurrent.futures.wait([future], timeout=deadline_s).not_done
            if late:
                self._get().shutdown(wait=True, kill_workers=True)
        return future

    def close(self) -> None:
        self._get().shutdown(wait=True, kill_workers=True)


POOLS = {"ours": OurPool, "pebble": PebblePool, "loky": LokyPool}


def warm_pool(name: str, num_workers: int) -> Any:
    """A pool whose workers have all answered once."""
    pool = POOLS[name](num_workers)
    first = [pool.submit(time.sleep, 0.2) for _ in range(num_workers)]
    concurrent.futures.wait(first)
    return pool


def measure_cold_start(name: str) -> str:
    """Seconds from nothing to a worker that has the preloaded module."""
    begin = time.perf_counter()
    pool = POOLS[name](1)
    pool.submit(importlib.import_module, "builtins").exception()
    pool.submit(hash, "x").result()
    seconds = time.perf_counter() - begin
    pool.close()
    return f"{seconds:.2f} s"


def measure_round_trip(name: str) -> str:
    """Median and 95th percentile of one small call, in milliseconds."""
    pool = warm_pool(name, 1)
    times_ms = []
    for _ in range(500):
        begin = time.perf_counter()
        pool.submit(math.sqrt, 2.0).result()
        times_ms.append((time.perf_counter() - begin) * MILLISECOND)
    pool.close()
    times_ms.sort()
    return f"{statistics.median(times_ms):.2f} / {times_ms[475]:.2f} ms"


def measure_hang(name: str) -> str:
    """Lateness of the error, and time to the next answer, after a hang in C code."""
    pool = warm_pool(name, 1)
    begin = time.perf_counter()
    pool.submit(pow, 9, 9**9, deadline_s=0.5).exception()
    error_ms = (time.perf_counter() - begin - 0.5) * MILLISECOND
    pool.submit(math.sqrt, 2.0).result()
    ready_ms = (time.perf_counter() - begin - 0.5) * MILLISECOND
    pool.close()
    return f"{error_ms:.0f} / {ready_ms:.0f} ms"


def measure_neighbours_of_hang(name: str) -> str:
    """Longest gap between answers of one worker while its neighbour hangs."""
    pool = warm_pool(name, 2)
    if name == "loky":
        return "-"
    late = pool.submit(pow, 9, 9**9, deadline_s=0.5)
    end, gap_s = time.perf_counter() + 1.5, 0.0
    while (begin := time.perf_counter()) < end:
        pool.submit(math.sqrt, 2.0).result()
        gap_s = max(gap_s, time.perf_counter() - begin)
    late.exception()
    pool.close()
    return f"{gap_s * MILLISECOND:.0f} ms"


def measure_death(name: str) -> str:
    """Calls lost besides the one that ends its worker, of 1 running and 4 waiting."""
    pool = warm_pool(name, 2)
    running = pool.submit(time.sleep, 0.5)
    pool.submit(os._exit, 3)
    others = [running]
    for _ in range(4):
        try:
            others.append(pool.submit(math.sqrt, 2.0))
        except Exception:  # noqa: BLE001 - any refusal counts as a lost call
            others.append(concurrent.futures.Future())
    done, _ = concurrent.futures.wait(others, timeout=5)
    lost = len(others) - sum(1 for call in done if not call.exception())
    pool.close()
    return f"{lost} of {len(others)} lost"


def measure_exit(name: str) -> str:
    """What a job's SystemExit becomes."""
    pool = warm_pool(name, 1)
    future = pool.submit(sys.exit, 3)
    concurrent.futures.wait([future], timeout=5)
    result = type(future.exception()).__name__ if future.done() else "no answer"
    pool.close()
    return result


def measure_hostile_result(name: str) -> str:
    """Does a result whose pickle names a function run it in the owner?"""
    pool = warm_pool(name, 1)
    with tempfile.TemporaryDirectory() as folder:
        mark = Path(folder, "mark")
        trap = "lambda self: (__import__('os').mkdir, (mark,))"
        source = f"type('Trap', (), {{'__reduce__': {trap}}})()"
        call = pool.submit(eval, source, {"mark": str(mark)})
        concurrent.futures.wait([call], timeout=5)
        ran = mark.exists()
    pool.close()
    return "yes" if ran else "no"


def measure_main_import(name: str) -> str:
    """How often a worker imported the program's main script again."""
    with tempfile.NamedTemporaryFile("r") as imports:
        environment = os.environ | {"POOLS_IMPORTS_FILE": imports.name}
        subprocess.run(_command("measure_round_trip", name), env=environment)
        return f"{len(imports.readlines()) - 1} times"


def measure_hash_seed(name: str) -> str:
    """Is the hash seed 0 in the workers although the parent has another?"""
    expected = subprocess.run(
        [sys.executable, "-c", "print(hash('x'))"],
        env=os.environ | {"PYTHONHASHSEED": "0"},
        capture_output=True,
    )
    pool = warm_pool(name, 1)
    same = pool.submit(hash, "x").result() == int(expected.stdout)
    pool.close()
    return "yes" if same else "no"


def measure_orphans(name: str) -> str:
    """Processes left two seconds after the owner was killed, a call hanging."""
    owner = subprocess.Popen(
        _command("hang_for_ever", name), stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout
    children = json.loads(owner.stdout.readline())
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    time.sleep(2)
    left = [pid for pid in children if _is_alive(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return f"{len(left)} of {len(children)}"


def hang_for_ever(name: str) -> str:
    """Print the pids of all descendants while a call hangs, and stay."""
    pool = warm_pool(name, 2)
    if name == "loky":
        pool._get().submit(pow, 9, 9**9)
    else:
        pool.submit(pow, 9, 9**9)
    time.sleep(0.5)
    print(json.dumps(_descendants(os.getpid())), flush=True)
    time.sleep(NO_DEADLINE_S)
    return ""


def _descendants(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task").glob("*/children")
    direct = [int(child) for path in children for child in path.read_text().split()]
    return direct + [pid for child in direct for pid in _descendants(child)]


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


QUESTIONS: dict[str, Callable[[str], str]] = {
    "cold start": measure_cold_start,
    "round trip median / p95": measure_round_trip,
    "hang: error late by / next answer": measure_hang,
    "hang: longest stall of a neighbour": measure_neighbours_of_hang,
    "os._exit: other calls": measure_death,
    "SystemExit in a job": measure_exit,
    "result runs code in the owner": measure_hostile_result,
    "main script imported again": measure_main_import,
    "hash seed 0 in workers": measure_hash_seed,
    "left after SIGKILL of owner": measure_orphans,
}


def _command(function: str, name: str) -> list[str]:
    return [sys.executable, __file__, "--measure", function, name]


def _ask(question: Callable[[str], str], name: str) -> str:
    with subprocess.Popen(
        _command(question.__name__, name),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as program:
        try:
            answer, _ = program.communicate(timeout=NO_DEADLINE_S)
        except subprocess.TimeoutExpired:
            answer = "hangs"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
    return answer.strip().splitlines()[-1] if answer.strip() else "fails"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pools", nargs="*", default=list(POOLS))
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(globals()[arguments.measure](arguments.pools[0]))
        return
    names = [
        name
        for name in arguments.pools
        if name == "ours" or importlib.util.find_spec(name)
    ]
    for missing in sorted(set(arguments.pools) - set(names)):
        print(f"{missing} cannot be imported; to include it: pip install {missing}")
    if not names:
        return
    print(f"{'':36}" + "".join(f"{name:>22}" for name in names))
    for title, question in QUESTIONS.items():
        answers = [_ask(question, name) for name in names]
        print(f"{title:36}" + "".join(f"{answer:>22}" for answer in answers))


if __name__ == "__main__":
    main()
