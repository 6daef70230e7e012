"""The share of correct answers scored in full, in each formatting.

    python -m tools.correct_answers [--tasks gcd dice] [--items 10]
        [--levels defaults 0 0.5 1] [--seed 15000000]

The right answer to many items of each task is written in every way of
`tools/answer_texts/formatting.py`.
Three scorers score them:

- library: the library's own, with the answer as it stands;
- exact: ours with `normalize_answers: false`;
- normalized: ours as it is by default.

Printed are the means over all tasks and those of each task, and the formatting of a
task that `normalized` scores in full in less than 0.8 of its items.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rg_env.library import datasets, registry, worker_jobs
from rg_env.reward.score import ScoringRules, as_unit
from tools.answer_texts.formatting import FORMATTING
from tools.answer_texts.sampled_items import (
    DEFAULTS,
    SampledItem,
    for_each_task,
    read_level,
    sampled_items,
    time_limit,
)

FIRST_SEED = 15_000_000
DEADLINE_S = 10
"""For one answer; the value is 0 after that."""

SCORERS = ("library", "exact", "normalized")
SHOWN_BELOW = 0.8

Shares = Mapping[str, float]
"""Scorer to the share that it scores in full."""


def _value(score: Callable[[str], Any], answer: str) -> float:
    """Return what a scorer gives; nothing where it raises or takes too long."""
    try:
        with time_limit(DEADLINE_S):
            return as_unit(score(answer))
    except Exception:  # noqa: BLE001 - foreign code on foreign text
        return 0.0


def scores(item: SampledItem, texts: Sequence[str]) -> dict[str, list[float]]:
    """Score texts as answers to an item: scorer to one value in [0, 1] for each."""
    dataset, entry = datasets.scoring_dataset(item.task, item.params), dict(item.entry)

    def ours(answer: str, normalize: bool) -> float:
        rules = ScoringRules(normalize_answers=normalize)
        job = (item.task, item.params, entry, [answer], rules)
        return worker_jobs.score_answers(*job)[0][0]

    scorers: tuple[Callable[[str], Any], ...] = (
        lambda answer: dataset.score_answer(answer, entry),
        lambda answer: ours(answer, normalize=False),
        lambda answer: ours(answer, normalize=True),
    )
    return {
        name: [_value(scorer, text.strip()) for text in texts]
        for name, scorer in zip(SCORERS, scorers, strict=True)
    }


def measure(
    task: str, levels: Sequence[float], items: int, seed: int
) -> dict[str, Shares]:
    """Return, for each formatting, which share of a task's is in full."""
    rows: dict[str, list[Shares]] = defaultdict(list)
    for item in sampled_items(task, levels, items, seed):
        written = {name: write(item.right) for name, write in FORMATTING.items()}
        texts = {name: text for name, text in written.items() if text is not None}
        columns = scores(item, list(texts.values()))
        for name, *values in zip(texts, *columns.values(), strict=True):
            full = (float(value == 1.0) for value in values)
            rows[name].append(dict(zip(SCORERS, full, strict=True)))
    return {name: _mean(of_name) for name, of_name in rows.items()}


def _mean(rows: Iterable[Shares]) -> Shares:
    found = list(rows)
    return {s: statistics.fmean(row[s] for row in found) for s in SCORERS if found}


def _table(head: str, rows: Mapping[str, Shares]) -> None:
    def line(name: str, cells: Iterable[str]) -> None:
        print(f"{name:60}" + "".join(f"{cell:>12}" for cell in cells))

    line(head, SCORERS)
    for name, row in rows.items():
        line(name, (f"{value:.2f}" for value in row.values()))
    print()


def report(by_task: Mapping[str, Mapping[str, Shares]]) -> None:
    rows = (_mean(of_task.values()) for of_task in by_task.values() if of_task)
    _table("", {"mean of all tasks": _mean(rows)})
    _table("task", {task: _mean(rows.values()) for task, rows in by_task.items()})
    low = {
        f"{task}: {name!r}": row
        for task, rows in by_task.items()
        for name, row in rows.items()
        if row["normalized"] < SHOWN_BELOW
    }
    _table(f"in full in less than {SHOWN_BELOW} with normalized", low)


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    add = parser.add_argument
    add("--tasks", nargs="+", help="only these")
    add("--items", type=int, default=10, help="of a task and level")
    levels = [DEFAULTS, 0.0, 0.5, 1.0]
    add("--levels", nargs="+", type=read_level, default=levels, help="or defaults")
    add("--seed", type=int, default=FIRST_SEED, help="of the first item")
    options = parser.parse_args()
    how = {"levels": options.levels, "items": options.items, "seed": options.seed}
    tasks = options.tasks or list(registry.describe().tasks)
    report(for_each_task(functools.partial(measure, **how), tasks))
    return 0


if __name__ == "__main__":
    sys.exit(main())
