"""Every hostile text against every task, through the real worker pool.

    python benchmarks/hostile.py [--tasks countdown n_queens]

Each text of `hostile_texts` is an answer to one entry of each task. It meets what an
answer meets in a run, in a worker process with a deadline: the limit on its length, the
guard, then the library's scorer or its correction. Counted are

- executions: files that appeared, connections that came in, processes that were
  started, variables that were set, by texts that say what they would leave behind;
- timeouts: answers at which the worker was stopped by the deadline;
- hangs: answers that took more than a second beyond the deadline;
- deaths: workers that ended for another reason than the deadline;
- scored: scores of 0.5 and more. A text that happens to be right is one of them.

The exit status is 1 if anything was executed, hung or ended a worker.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rg_env import Tasks
from rg_env.library import worker_jobs
from rg_env.library.registry import TASKS
from rg_env.reward.score import ScoringRules
from rg_env.stream.group_scorer import GroupScorer
from rg_env.workers.worker_pool import WorkerPool
from tests.support.hostile_texts import ENVIRONMENT_MARK, HOSTILE, PROCESS_MARK, armed

DEADLINE_S = 5.0
GRACE_S = 1.0


class Canaries:
    """What texts can touch: a folder, a port, processes, a worker's environment."""

    def __init__(self, pool: WorkerPool, folder: str) -> None:
        self.folder = folder
        self._touched = Counter(connections=0, variables=0)
        self._pool = pool
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self._listener.accept()[0].close()
                self._touched["connections"] += 1

    def check_worker(self) -> None:
        """Count and remove what was set in the worker that ran last."""
        if self._pool.call(os.getenv, ENVIRONMENT_MARK, deadline_s=DEADLINE_S):
            self._touched["variables"] += 1
            self._pool.call(os.unsetenv, ENVIRONMENT_MARK, deadline_s=DEADLINE_S)

    def executions(self) -> dict[str, int]:
        """Return what was found so far, by the way it was done."""
        processes = 0
        for command in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                processes += PROCESS_MARK.encode() in command.read_bytes()
        files = len(list(Path(self.folder).iterdir()))
        return {"files": files, "processes": processes, **self._touched}


def attack(pool: WorkerPool, canaries: Canaries, task: str) -> Counter[str]:
    """Score all texts as answers to a task, print what happened, and count it."""
    (item,) = Tasks(task).evaluation(1, seed=20_250)
    scorer = GroupScorer(pool, DEADLINE_S, ScoringRules())
    found = Counter[str]()
    deaths = pool.deaths
    slowest = (0.0, "")
    for hostile in HOSTILE:
        text = armed(hostile.text, canaries.folder, canaries.port)
        began = time.monotonic()
        score = scorer.score_blocking(item, item.entry, text)
        took_s = time.monotonic() - began
        slowest = max(slowest, (took_s, hostile.name))
        is_hang = took_s > DEADLINE_S + GRACE_S
        is_scored = score.value >= 0.5
        found += Counter([score.outcome] + ["hangs"] * is_hang + ["scored"] * is_scored)
        if score.outcome == "timeout" or is_hang or is_scored:
            print(f"    {score.outcome} {score.value:.3f}: {hostile.name}")
    canaries.check_worker()
    found["deaths"] += pool.deaths - deaths
    print(
        f"{task}: {dict(found)}; slowest {slowest[0]:.2f} s, {slowest[1]}", flush=True
    )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--tasks", nargs="+", help="only these")
    options = parser.parse_args()
    how = {"memory_limit_bytes": 3 * 2**30, "preload": worker_jobs.PRELOAD}
    with (
        contextlib.closing(WorkerPool(1, **how)) as pool,
        tempfile.TemporaryDirectory(prefix="hostile-") as folder,
    ):
        canaries = Canaries(pool, folder)
        tasks = options.tasks or list(TASKS)
        found = sum((attack(pool, canaries, task) for task in tasks), Counter[str]())
        executions = canaries.executions()
    print(f"{len(tasks)} tasks, {len(HOSTILE)} texts: {dict(found)}; {executions}")
    return int(any(executions.values()) or found["hangs"] + found["deaths"] > 0)


if __name__ == "__main__":
    sys.exit(main())
