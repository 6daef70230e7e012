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
import contextlib
import dataclasses
import functools
import io
import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any

from rg_env.task_rules.table import fault_of, solution
from rg_env.tasks import datasets, scales
from rg_env.tasks.sampler import mix_of_seed
from tools.answer_texts.sampled_items import for_each_task, time_limit
from tools.gold_solvers import SOLVERS

LEVELS = (None, 0.0, 0.5, 1.0)
FIRST_SEED = 7_000_000
LIMIT_S = 5
"""For making an item, and for judging it."""

REJECTED = ("refuted", "not unique", "not knowable")


@dataclasses.dataclass
class Tally:
    """What was found of one task at one level, see above.

    Attributes:
        faulty: Items that are not sampled.
        seeds: Seeds of up to five that are sampled and should not be.
    """

    verdicts: Counter[str] = dataclasses.field(default_factory=Counter)
    faulty: int = 0
    sampled: int = 0
    needless: int = 0
    seeds: list[int] = dataclasses.field(default_factory=list)

    def count(self, seed: int, verdict: str, is_faulty: bool) -> None:
        self.verdicts[verdict] += 1
        self.faulty += is_faulty
        self.needless += verdict == "right" and is_faulty
        if verdict in REJECTED and not is_faulty:
            self.sampled += 1
            self.seeds = [*self.seeds, seed][:5]

    @property
    def cells(self) -> list[int]:
        """The numbers of a row, as HEAD names them."""
        verdicts = [self.verdicts[word] for word in ("right", *REJECTED, "not judged")]
        of_checks = [self.faulty, self.sampled, self.needless]
        return [self.verdicts.total(), *verdicts, *of_checks]


HEAD = ("items", "right", *REJECTED, "not judged", "not scored", "sampled", "needless")


def _entry(task: str, params: Mapping[str, Any], seed: int) -> dict[str, Any] | None:
    """Make an entry as the library makes it; None if it does not, or takes too long."""
    try:
        with time_limit(LIMIT_S), contextlib.redirect_stdout(io.StringIO()):
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


def judge(task: str, items: int) -> dict[str, Tally]:
    scale = scales.load_shipped().scales.get(task)
    found = {}
    for level in LEVELS if scale is not None else LEVELS[:1]:
        tally = found["defaults" if level is None else f"{level:g}"] = Tally()
        for seed in range(FIRST_SEED, FIRST_SEED + items):
            params: Mapping[str, Any] = {}
            if scale is not None and level is not None:
                params = scale.step_at(level, mix_of_seed(seed)).params
            entry = _entry(task, params, seed)
            if entry is not None:
                is_faulty = fault_of(task, entry) is not None
                tally.count(seed, _verdict(task, entry), is_faulty)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--tasks", nargs="+", choices=sorted(SOLVERS), metavar="TASK")
    parser.add_argument("--items", type=int, default=40, help="of a task and level")
    options = parser.parse_args()
    tasks = options.tasks or sorted(SOLVERS)
    results = for_each_task(functools.partial(judge, items=options.items), tasks)
    rows = [
        (t, level, one) for t, of_t in results.items() for level, one in of_t.items()
    ]
    print(f"{'task':24}{'level':>9}" + "".join(f"{word:>13}" for word in HEAD))
    for task, level, tally in rows:
        cells = "".join(f"{cell or '-':>13}" for cell in tally.cells)
        print(f"{task:24}{level:>9}{cells}  {tally.seeds or ''}")
    sums = [
        sum(column) for column in zip(*(one.cells for *_, one in rows), strict=True)
    ]
    print(f"{'all':33}" + "".join(f"{total or '-':>13}" for total in sums))
    return int(any(tally.sampled for *_, tally in rows))


if __name__ == "__main__":
    sys.exit(main())
