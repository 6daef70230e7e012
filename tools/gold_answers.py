"""The reference answers of the library, judged by solvers that read the questions.

    python -m tools.gold_answers [--tasks syllogism ...] [--items 40] [--json FILE]

Items are made at the library's defaults and at the levels 0, 0.5 and 1 of the scale.
Each task has a solver of its own, in `gold_solvers`, that reads the text of a question
and says of the gold answer that it is right, refuted, not the only right one although
the scorer takes no other, or cannot be known from the question; or that it was not
judged. Beside that stands what the environment does: whether a check of
the task's row keeps the item from being sampled. Of both together three numbers follow:

- wrong: items whose gold answer the solver rejects; `scorer_fixes: false` samples them;
- sampled: those among them that are sampled nevertheless;
- needless: items that are not sampled although the solver finds them right, with those
  whose answer is given away by the question or right too often.

Shown at the end is what the checks cost, beside making the items. The exit status is 1
if any item whose gold answer is rejected would be sampled.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import io
import json
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rg_env.task_rules.table import fault_of, rules_of, solution
from rg_env.tasks import library, scales
from rg_env.tasks.sampler import mix_of_seed
from tools.answer_texts.audit_command import for_each_task
from tools.answer_texts.sampled_items import time_limit
from tools.gold_solvers import boards, logic, numbers, programs, puzzles, words
from tools.gold_solvers.reading import Solver

SOLVERS: Mapping[str, Solver] = {
    **numbers.SOLVERS,
    **words.SOLVERS,
    **boards.SOLVERS,
    **logic.SOLVERS,
    **puzzles.SOLVERS,
    **programs.SOLVERS,
}
LEVELS = (None, 0.0, 0.5, 1.0)
FIRST_SEED = 7_000_000
LIMIT_S = 5
"""For making an item, and for judging it."""

REJECTED = ("refuted", "not unique", "not knowable")


@dataclasses.dataclass
class Tally:
    """What was found of one task at one level.

    Attributes:
        items: Items that were made.
        verdicts: Their number by what the solver says, or "not judged".
        faults: Number of items that are not sampled, by the reason.
        sampled: Items that are sampled although the solver rejects their gold answer.
        needless: Items that are not sampled although the solver accepts it.
        making_s: CPU time of making the items.
        checking_s: CPU time of the checks.
        seeds: Seeds of up to five rejected items.
    """

    items: int = 0
    verdicts: Counter[str] = dataclasses.field(default_factory=Counter)
    faults: Counter[str] = dataclasses.field(default_factory=Counter)
    sampled: int = 0
    needless: int = 0
    making_s: float = 0.0
    checking_s: float = 0.0
    seeds: list[int] = dataclasses.field(default_factory=list)

    @property
    def wrong(self) -> int:
        """Number of items whose gold answer the solver rejects."""
        return sum(self.verdicts[word] for word in REJECTED)


def _entry(task: str, params: Mapping[str, Any], seed: int) -> dict[str, Any] | None:
    """Make an entry as the library makes it; None if it does not, or takes too long."""
    try:
        with time_limit(LIMIT_S), contextlib.redirect_stdout(io.StringIO()):
            return library.make_entry(task, params, seed, checked=False)
    except Exception:  # noqa: BLE001 - foreign code may raise anything
        return None


def _verdict(task: str, entry: Mapping[str, Any]) -> str:
    gold = solution(task, entry)
    try:
        with time_limit(LIMIT_S):
            return SOLVERS[task](entry["question"], str(gold))
    except Exception:  # noqa: BLE001 - a solver that cannot read a question says so
        return "not judged"


def judge(task: str, items: int) -> dict[str, Tally]:
    """Judge the items of a task, by level."""
    scale = scales.load_shipped().scales.get(task)
    found = {}
    for level in LEVELS if scale is not None else LEVELS[:1]:
        tally = found["defaults" if level is None else f"{level:g}"] = Tally()
        for seed in range(FIRST_SEED, FIRST_SEED + items):
            params: Mapping[str, Any] = {}
            if scale is not None and level is not None:
                params = scale.step_at(level, mix_of_seed(seed)).params
            began_s = time.process_time()
            entry = _entry(task, params, seed)
            tally.making_s += time.process_time() - began_s
            if entry is None:
                continue
            began_s = time.process_time()
            fault = fault_of(task, entry)
            tally.checking_s += time.process_time() - began_s
            _count(tally, seed, _verdict(task, entry), fault)
    return found


def _count(tally: Tally, seed: int, verdict: str, fault: str | None) -> None:
    tally.items += 1
    tally.verdicts[verdict] += 1
    tally.faults.update([fault] if fault is not None else [])
    tally.needless += verdict == "right" and fault is not None
    if verdict in REJECTED:
        tally.sampled += fault is None
        tally.seeds = [*tally.seeds, seed][:5]


HEAD = ("items", "right", *REJECTED, "not judged", "not scored", "sampled", "needless")


def _cells(tally: Tally) -> list[int]:
    verdicts = [tally.verdicts[word] for word in ("right", *REJECTED, "not judged")]
    faulty = tally.faults.total()
    return [tally.items, *verdicts, faulty, tally.sampled, tally.needless]


def _show(results: Mapping[str, Mapping[str, Tally]]) -> None:
    print(f"{'task':24}{'level':>9}" + "".join(f"{word:>13}" for word in HEAD))
    for task, levels in results.items():
        for level, tally in levels.items():
            cells = "".join(f"{cell or '-':>13}" for cell in _cells(tally))
            print(f"{task:24}{level:>9}{cells}")
    tallies = [tally for levels in results.values() for tally in levels.values()]
    sums = [sum(column) for column in zip(*map(_cells, tallies), strict=True)]
    print(f"{'all':33}" + "".join(f"{total or '-':>13}" for total in sums))
    print("\nms an item of the tasks with checks: making, checking")
    for task, levels in results.items():
        if rules_of(task).item_checks:
            items = max(1, sum(tally.items for tally in levels.values()))
            making_s = sum(tally.making_s for tally in levels.values())
            checking_s = sum(tally.checking_s for tally in levels.values())
            costs = [1000 * cost_s / items for cost_s in (making_s, checking_s)]
            print(f"{task:24}" + "".join(f"{cost_ms:10.3f}" for cost_ms in costs))
    print("\nwithout a solver: " + ", ".join(sorted(_unsolved())))


def _unsolved() -> set[str]:
    return set(library.describe().tasks) - set(SOLVERS)


def main() -> int:
    """Judge all tasks, each in one of two processes, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", choices=sorted(SOLVERS), metavar="TASK")
    parser.add_argument("--items", type=int, default=40, help="of a task and level")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    tasks = options.tasks or sorted(SOLVERS)
    results = for_each_task(functools.partial(judge, items=options.items), tasks, 2)
    _show(results)
    if options.json:
        rows = [
            {"task": task, "level": level, **vars(tally)}
            for task, levels in results.items()
            for level, tally in levels.items()
        ]
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return int(any(t.sampled for levels in results.values() for t in levels.values()))


if __name__ == "__main__":
    sys.exit(main())
