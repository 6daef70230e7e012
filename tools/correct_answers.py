"""The share of correct answers scored in full, in each formatting and notation.

    python -m tools.correct_answers [--tasks gcd dice] [--items 10]
        [--levels defaults 0 0.5 1] [--seed 15000000] [--below 0.8]

The right answer to many items of each task is written in every way of
`tools/answer_texts/`: some hundred kinds of formatting, and the notations of its kind.
Three scorers score them:

- library: the library's own, with the answer as it stands;
- exact: ours with `normalize_answers: false`;
- normalized: ours as it is by default.

Printed are the means over all tasks, those of each kind of formatting and notation, and
of each task; and the notations of a task that `normalized` scores in full in less than
`--below` of its items.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rg_env.items import worker_jobs
from rg_env.scoring.score import as_unit
from rg_env.scoring.scoring_rules import ScoringRules
from rg_env.tasks import datasets, library
from tools.answer_texts.formatting import GENERAL
from tools.answer_texts.notations import KIND_OF, notations_of
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

Shares = Mapping[str, float]
"""Scorer to the share that it scores in full."""

Cells = Mapping[tuple[str, str], Shares]
"""Task and notation to their shares."""


def _value(score: Callable[[str], Any], answer: str) -> float:
    """Return what a scorer gives; nothing where it raises or takes too long."""
    try:
        with time_limit(DEADLINE_S), contextlib.redirect_stdout(io.StringIO()):
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
    answers = [text.strip() for text in texts]
    return {
        name: [_value(scorer, answer) for answer in answers]
        for name, scorer in zip(SCORERS, scorers, strict=True)
    }


def measure(
    task: str, levels: Sequence[float], items: int, seed: int
) -> dict[str, Shares]:
    found: dict[str, dict[str, list[bool]]] = {}
    for item in sampled_items(task, levels, items, seed):
        texts = notations_of(item)
        for scorer, values in scores(item, list(texts.values())).items():
            for name, value in zip(texts, values, strict=True):
                of_name = found.setdefault(name, defaultdict(list))
                of_name[scorer].append(value == 1.0)
    return {
        name: {scorer: statistics.fmean(full) for scorer, full in of_name.items()}
        for name, of_name in found.items()
    }


def _mean(rows: Iterable[Shares]) -> dict[str, float]:
    found = list(rows)
    return {s: statistics.fmean(row[s] for row in found) for s in SCORERS if found}


def _by(key: Callable[[str, str], str], cells: Cells) -> dict[str, Shares]:
    """Return means of what has the same key, of its task and notation."""
    rows: dict[str, list[Shares]] = defaultdict(list)
    for (task, name), shares in cells.items():
        rows[key(task, name)].append(shares)
    return {name: _mean(row) for name, row in rows.items()}


def _of_tasks(cells: Cells) -> dict[str, Shares]:
    return _by(lambda task, name: task, cells)


def _table(head: str, rows: Mapping[str, Shares]) -> list[str]:
    def line(name: str, cells: Iterable[str]) -> str:
        return f"{name:60}" + "".join(f"{cell:>12}" for cell in cells)

    lines = [line(n, (f"{row[s]:.2f}" for s in row)) for n, row in rows.items() if row]
    return [line(head, SCORERS), *lines, ""]


def report(cells: Cells, below: float) -> list[str]:
    formatting = {key: row for key, row in cells.items() if key[1] in GENERAL}
    notations = {key: row for key, row in cells.items() if key[1] not in GENERAL}
    parts = {"formatting": formatting, "notations of its kind": notations}
    means = {name: _mean(_of_tasks(part).values()) for name, part in parts.items()}
    low = {
        f"{task}: {name!r}": row
        for (task, name), row in cells.items()
        if row["normalized"] < below
    }
    return [
        *_table("mean of all tasks", means),
        *_table("kind", _by(lambda task, name: KIND_OF[name], cells)),
        *_table("task", _of_tasks(cells)),
        *_table(f"in full in less than {below} with normalized", low),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    add = parser.add_argument
    add("--tasks", nargs="+", help="only these")
    add("--items", type=int, default=10, help="of a task and level")
    levels = [DEFAULTS, 0.0, 0.5, 1.0]
    add("--levels", nargs="+", type=read_level, default=levels, help="or defaults")
    add("--seed", type=int, default=FIRST_SEED, help="of the first item")
    add("--below", type=float, default=0.8, help="list what scores less")
    options = parser.parse_args()
    how = {"levels": options.levels, "items": options.items, "seed": options.seed}
    tasks = options.tasks or list(library.describe().tasks)
    found = for_each_task(functools.partial(measure, **how), tasks)
    cells = {(t, name): row for t, of_t in found.items() for name, row in of_t.items()}
    print("\n".join(report(cells, options.below)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
