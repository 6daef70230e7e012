"""The reference answers of the library, judged by solvers that read the questions.

    python -m tools.gold_answers [--tasks syllogism ...] [--items 40]

Items are made at the library's defaults and at the levels 0, 0.5 and 1 of the scale.
The solvers in `gold_solvers` read the text of a question and say whether the gold
answer is right; some questions they cannot read. They reject an answer that is wrong,
that is not the only right one although the scorer takes no other, or that the question
does not tell. There is one for each task in which something was found, and for tasks
whose answers it judges elsewhere, because they have several. Beside that stands what
the environment does: whether a check of the task's row keeps the item from being
sampled. Of both together two numbers follow:

- sampled: items that are sampled although the solver rejects their gold answer;
- needless: items that are not sampled although the solver finds them right, with those
  whose answer is given away by the question or right too often.

The exit status is 1 if any item whose gold answer is rejected would be sampled.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Mapping
from typing import Any

import polars as pl

from rg_env.library import datasets
from rg_env.task_rules.table import fault_of, solution
from tools.answer_texts.sampled_items import attempted, levels_of, rows_of_tasks
from tools.gold_solvers import SOLVERS
from tools.tables import markdown

FIRST_SEED = 7_000_000
LIMIT_S = 5
"""For making an item, and for judging it."""

IS_FAULTY = pl.col("is_faulty")
IS_RIGHT = pl.col("is_right")
COUNTS = {
    "items": pl.len(),
    "right": IS_RIGHT.sum(),
    "rejected": (~IS_RIGHT).sum(),
    "not judged": IS_RIGHT.null_count(),
    "not scored": IS_FAULTY.sum(),
    "sampled": (~IS_RIGHT & ~IS_FAULTY).sum(),
    "needless": (IS_RIGHT & IS_FAULTY).sum(),
}


def judge(task: str, items: int) -> list[Mapping[str, Any]]:
    """Return the verdict on each item, and whether a check says that it is faulty."""
    rows: list[Mapping[str, Any]] = []
    for level, params_of in levels_of(task):
        for seed in range(FIRST_SEED, FIRST_SEED + items):
            params = params_of(seed)
            entry = attempted(LIMIT_S, datasets.make_entry, task, params, seed, False)
            if isinstance(entry, Exception):
                continue
            gold = str(solution(task, entry))
            # A solver that cannot read a question raises an error.
            is_right = attempted(LIMIT_S, SOLVERS[task], entry["question"], gold)
            rows.append(
                {
                    "task": task,
                    "level": level,
                    "is_right": None if isinstance(is_right, Exception) else is_right,
                    "is_faulty": fault_of(task, entry) is not None,
                }
            )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--tasks", nargs="+", choices=sorted(SOLVERS), metavar="TASK")
    parser.add_argument("--items", type=int, default=40, help="of a task and level")
    options = parser.parse_args()
    job = functools.partial(judge, items=options.items)
    rows = rows_of_tasks(job, options.tasks or sorted(SOLVERS))
    total = rows.select(**COUNTS)
    by_level = rows.group_by("task", "level", maintain_order=True).agg(**COUNTS)
    print(markdown({"Levels": by_level, "All": total}))
    return int(total["sampled"].item() > 0)


if __name__ == "__main__":
    sys.exit(main())
