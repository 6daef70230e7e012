"""The reference answers of the library, judged by solvers that read the questions.

    python -m tools.gold_answers [--tasks syllogism ...] [--items 40]

Items are made at the library's defaults and at the levels 0, 0.5 and 1 of the scale.
The solvers in `gold_solvers` read the text of a question and say of the gold answer
that it is right, refuted, not the only right one although the scorer takes no other, or
cannot be known from the question; or that it was not judged. There is one for each task
in which something was found, and for tasks whose answers it judges elsewhere, because
they have several. Beside that stands what the environment does: whether a check of the
task's row keeps the item from being sampled. Of both together two numbers follow:

- sampled: items that are sampled although the solver rejects their gold answer;
- needless: items that are not sampled although the solver finds them right, with those
  whose answer is given away by the question or right too often.

The exit status is 1 if any item whose gold answer is rejected would be sampled.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any

from rg_env.library import datasets, scales
from rg_env.stream.sampler import mix_of_seed
from rg_env.task_rules.table import fault_of, solution
from tools.answer_texts.sampled_items import for_each_task, time_limit
from tools.gold_solvers import SOLVERS

LEVELS = (None, 0.0, 0.5, 1.0)
FIRST_SEED = 7_000_000
LIMIT_S = 5
"""For making an item, and for judging it."""

REJECTED = ("refuted", "not unique", "not knowable")
HEAD = ("items", "right", *REJECTED, "not judged", "not scored", "sampled", "needless")


def _entry(task: str, params: Mapping[str, Any], seed: int) -> dict[str, Any] | None:
    """Make an entry as the library makes it; None if it does not, or takes too long."""
    try:
        with time_limit(LIMIT_S):
            return datasets.make_entry(task, params, seed, checked=False)
    except Exception:  # noqa: BLE001 - foreign code may raise anything
        return None


def _verdict(task: str, entry: Mapping[str, Any]) -> str:
    gold = solution(task, entry)
    try:
        with time_limit(LIMIT_S):
            return SOLVERS[task](entry["question"], str(gold))
    except Exception:  # noqa: BLE001 - a solver that cannot read a question says so
        return "not judged"


def judge(task: str, items: int) -> dict[str, Counter[str]]:
    """Return the counts that HEAD names, by level."""
    scale = scales.load_shipped().scales.get(task)
    found = {}
    for level in LEVELS if scale is not None else LEVELS[:1]:
        counts: Counter[str] = Counter()
        for seed in range(FIRST_SEED, FIRST_SEED + items):
            params: Mapping[str, Any] = {}
            if scale is not None and level is not None:
                params = scale.step_at(level, mix_of_seed(seed)).params
            entry = _entry(task, params, seed)
            if entry is None:
                continue
            verdict = _verdict(task, entry)
            is_faulty = fault_of(task, entry) is not None
            counts += Counter(["items", verdict, *["not scored"] * is_faulty])
            counts["sampled"] += verdict in REJECTED and not is_faulty
            counts["needless"] += verdict == "right" and is_faulty
        found["defaults" if level is None else f"{level:g}"] = counts
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--tasks", nargs="+", choices=sorted(SOLVERS), metavar="TASK")
    parser.add_argument("--items", type=int, default=40, help="of a task and level")
    options = parser.parse_args()
    tasks = options.tasks or sorted(SOLVERS)
    found = for_each_task(functools.partial(judge, items=options.items), tasks)
    rows = [(t, level, one) for t, of_t in found.items() for level, one in of_t.items()]
    total = sum((counts for *_, counts in rows), Counter[str]())
    print(f"{'task':24}{'level':>9}" + "".join(f"{word:>13}" for word in HEAD))
    for task, level, counts in [*rows, ("all", "", total)]:
        cells = "".join(f"{counts[word] or '-':>13}" for word in HEAD)
        print(f"{task:24}{level:>9}{cells}")
    return int(total["sampled"] > 0)


if __name__ == "__main__":
    sys.exit(main())
