"""The share of correct answers scored in full, in each formatting.

    python -m tools.correct_answers [--tasks gcd dice] [--items 10]

The right answer to many items of each task, at its defaults and at three levels, is
written in every way of `tools/answer_texts/formatting.py`.
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
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import polars as pl

from rg_env.library import datasets, registry, worker_jobs
from rg_env.reward.score import ScoringRules, as_unit
from tools.answer_texts.formatting import FORMATTING
from tools.answer_texts.sampled_items import (
    SampledItem,
    attempted,
    levels_of,
    rows_of_tasks,
    sampled_items,
)
from tools.tables import markdown

FIRST_SEED = 15_000_001
SEEDS_OF_A_LEVEL = 1_000_003
DEADLINE_S = 10
"""For one answer; the value is 0 after that."""

SCORERS = ("library", "exact", "normalized")
SHOWN_BELOW = 0.8


def _value(score: Callable[[str], Any], answer: str) -> float:
    """Return what a scorer gives; nothing where it raises or takes too long."""
    value = attempted(DEADLINE_S, lambda: as_unit(score(answer)))
    return value if isinstance(value, float) else 0.0


def scores(item: SampledItem, texts: Iterable[str]) -> Iterator[tuple[float, ...]]:
    """Score texts as answers to an item: yield the values of SCORERS for each."""
    dataset, entry = datasets.scoring_dataset(item.task, item.params), dict(item.entry)

    def ours(rules: ScoringRules, answer: str) -> float:
        rows = worker_jobs.score_answers(item.task, item.params, entry, [answer], rules)
        return rows[0][0]

    scorers: tuple[Callable[[str], Any], ...] = (
        lambda answer: dataset.score_answer(answer, entry),
        functools.partial(ours, ScoringRules(normalize_answers=False)),
        functools.partial(ours, ScoringRules()),
    )
    for text in texts:
        yield tuple(_value(scorer, text.strip()) for scorer in scorers)


def measure(task: str, items: int) -> list[Mapping[str, Any]]:
    """Return for each item and formatting whether the scorers score it in full."""
    rows: list[Mapping[str, Any]] = []
    for place, (_, params_of) in enumerate(levels_of(task)):
        first_seed = FIRST_SEED + SEEDS_OF_A_LEVEL * place
        sampled = sampled_items(task, first_seed, params_of)
        for item in itertools.islice(sampled, items):
            written = {name: write(item.right) for name, write in FORMATTING.items()}
            texts = {name: text for name, text in written.items() if text is not None}
            for name, values in zip(texts, scores(item, texts.values()), strict=True):
                full = (value == 1.0 for value in values)
                row = dict(zip(SCORERS, full, strict=True))
                rows.append({"task": task, "formatting": name, **row})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--tasks", nargs="+", help="only these")
    parser.add_argument("--items", type=int, default=10, help="of a task and level")
    options = parser.parse_args()
    job = functools.partial(measure, items=options.items)
    rows = rows_of_tasks(job, options.tasks or list(registry.describe().tasks))
    mean = pl.col(SCORERS).mean()
    by_form = rows.group_by("task", "formatting", maintain_order=True).agg(mean)
    by_task = by_form.group_by("task", maintain_order=True).agg(mean)
    low = by_form.filter(pl.col("normalized") < SHOWN_BELOW)
    tables = {
        "Mean of all tasks": by_task.select(mean),
        "Tasks": by_task,
        f"In full in less than {SHOWN_BELOW} with normalized": low,
    }
    print(markdown(tables))


if __name__ == "__main__":
    main()
