"""Every hostile text against every task, through the real worker pool.

    python benchmarks/hostile.py [--tasks countdown n_queens] [--json FILE]

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
import dataclasses
import itertools
import json
import os
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rg_env.items import worker_jobs
from rg_env.items.entry_maker import is_unusable
from rg_env.items.group_scorer import GroupScorer, TaskHandle
from rg_env.scoring.scoring_rules import ScoringRules
from rg_env.workers.pool_errors import JobError
from rg_env.workers.worker_pool import WorkerPool
from tests.support.hostile_texts import (
    ENVIRONMENT_MARK,
    HOSTILE,
    PROCESS_MARK,
    HostileText,
    armed,
)

DEADLINE_S = 5.0
MAKING_DEADLINE_S = 60.0
GRACE_S = 1.0
SCORED_FROM = 0.5
MEMORY_LIMIT_BYTES = 3 * 2**30
SEED = 20_250


class Canaries:
    """What texts can touch: a folder, a port, processes, a worker's environment."""

    def __init__(self, pool: WorkerPool, folder: str) -> None:
        self.folder = folder
        self.connections = 0
        self.variables = 0
        self._pool = pool
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self._listener.accept()[0].close()
                self.connections += 1

    def check_worker(self) -> None:
        """Count and remove what was set in the worker that ran last."""
        if self._pool.call(os.getenv, ENVIRONMENT_MARK, deadline_s=DEADLINE_S):
            self.variables += 1
            self._pool.call(os.unsetenv, ENVIRONMENT_MARK, deadline_s=DEADLINE_S)

    def counts(self) -> dict[str, int]:
        """Return what was found so far, by the way it was done."""
        processes = 0
        for command in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                processes += PROCESS_MARK.encode() in command.read_bytes()
        return {
            "files": len(list(Path(self.folder).iterdir())),
            "connections": self.connections,
            "processes": processes,
            "variables": self.variables,
        }


@dataclasses.dataclass
class TaskResult:
    """What happened at one task."""

    task: str
    texts: int = 0
    outcomes: Counter[str] = dataclasses.field(default_factory=Counter)
    hangs: list[str] = dataclasses.field(default_factory=list)
    timeouts: list[str] = dataclasses.field(default_factory=list)
    scored: dict[str, float] = dataclasses.field(default_factory=dict)
    deaths: int = 0
    slowest_s: float = 0.0
    slowest: str = ""


class Battery:
    """The texts against one task after the other."""

    def __init__(self, pool: WorkerPool, canaries: Canaries) -> None:
        self._pool = pool
        self._canaries = canaries
        self._scorer = GroupScorer(pool, DEADLINE_S, ScoringRules())

    def run(self, task: str) -> TaskResult:
        """Score every text as an answer to one entry of a task."""
        entry = self._entry(task)
        result = TaskResult(task)
        before = self._pool.deaths
        for hostile in HOSTILE:
            self._score(hostile, task, entry, result)
        self._canaries.check_worker()
        result.deaths = self._pool.deaths - before
        return result

    def _entry(self, task: str) -> dict[str, Any]:
        """Make the first entry that is sampled."""
        for seed in itertools.count(SEED):
            call = (worker_jobs.make_entry, task, {}, seed)
            try:
                return self._pool.call(*call, deadline_s=MAKING_DEADLINE_S)
            except JobError as error:
                if not is_unusable(error):
                    raise
        raise AssertionError("counting does not end")

    def _score(
        self,
        hostile: HostileText,
        task: str,
        entry: Mapping[str, Any],
        result: TaskResult,
    ) -> None:
        text = armed(hostile.text, self._canaries.folder, self._canaries.port)
        began = time.monotonic()
        score = self._scorer.score_blocking(TaskHandle(task), entry, text)
        took_s = time.monotonic() - began
        result.texts += 1
        result.outcomes[score.outcome] += 1
        if score.outcome == "timeout":
            result.timeouts.append(hostile.name)
        if took_s > DEADLINE_S + GRACE_S:
            result.hangs.append(hostile.name)
        if score.value >= SCORED_FROM:
            result.scored[hostile.name] = round(score.value, 3)
        if took_s > result.slowest_s:
            result.slowest_s, result.slowest = round(took_s, 3), hostile.name


def _rows(results: list[TaskResult]) -> Iterator[str]:
    head = ("rejected", "wrong", "partial", "right", "error", "timeout", "scored")
    yield f"{'task':28}" + "".join(f"{word:>9}" for word in head) + "  slowest"
    for result in results:
        words = ("rejected", "wrong", "partial", "right", "scorer_error", "timeout")
        figures = [result.outcomes[word] for word in words] + [len(result.scored)]
        numbers = "".join(f"{figure:9}" for figure in figures)
        slowest = f"{result.slowest_s:.2f} s {result.slowest}"
        yield f"{result.task:28}{numbers}  {slowest}"


def _summary(results: list[TaskResult], canaries: Canaries) -> dict[str, Any]:
    outcomes: Counter[str] = sum((r.outcomes for r in results), Counter())
    return {
        "tasks": len(results),
        "texts": len(HOSTILE),
        "answers": sum(r.texts for r in results),
        "executions": canaries.counts(),
        "hangs": sum(len(r.hangs) for r in results),
        "timeouts": sum(len(r.timeouts) for r in results),
        "deaths": sum(r.deaths for r in results),
        "scored": sum(len(r.scored) for r in results),
        "outcomes": dict(outcomes),
    }


def _print(results: list[TaskResult], summary: dict[str, Any]) -> None:
    print("\n".join(_rows(results)))
    print()
    for result in results:
        for name in result.timeouts:
            print(f"timeout  {result.task}: {name}")
        scored = [f"{name} {value}" for name, value in result.scored.items()]
        if scored:
            more = f" and {len(scored) - 3} more" if len(scored) > 3 else ""
            print(f"scored   {result.task}: {', '.join(scored[:3])}{more}")
    print()
    for word, figure in summary.items():
        print(f"{word:12} {figure}")


def main() -> int:
    """Run the battery and print what happened."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", help="only these")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    pool = WorkerPool(
        1, memory_limit_bytes=MEMORY_LIMIT_BYTES, preload=worker_jobs.PRELOAD
    )
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        canaries = Canaries(pool, folder)
        battery = Battery(pool, canaries)
        description = pool.call(
            worker_jobs.describe_library, deadline_s=MAKING_DEADLINE_S
        )
        tasks = options.tasks or list(description.tasks)
        results = []
        for number, task in enumerate(tasks, 1):
            print(f"\r{number}/{len(tasks)} {task:30}", end="", file=sys.stderr)
            results.append(battery.run(task))
        print(file=sys.stderr)
        summary = _summary(results, canaries)
    pool.close()
    summary["seconds"] = round(time.monotonic() - began, 1)
    _print(results, summary)
    if options.json:
        report = {"summary": summary, "tasks": [vars(result) for result in results]}
        options.json.write_text(json.dumps(report, indent=1), encoding="utf-8")
    executed = any(summary["executions"].values())
    return int(executed or summary["hangs"] > 0 or summary["deaths"] > 0)


if __name__ == "__main__":
    sys.exit(main())
