"""The share of correct answers scored in full, in each formatting.

    python -m tools.correct_answers [--tasks gcd dice] [--items 10]
    python -m tools.correct_answers --languages de ja

The right answer to many items of each task, at its defaults and at three levels, is
written in every way of `tools/answer_texts/formatting.py`, and scored by the library's
scorer as it stands, and by ours. With the multilingual version of reasoning-gym, which
is installed instead of the usual one, the items can be in some languages instead.

Printed are the means over all tasks, those of each task, and the formatting of a task
that ours scores in full in less than 0.8 of its items. One is the bare answer, `X`.
Wrong answers near the right one that score above a half stand there too.
"""

from __future__ import annotations

import argparse
import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from rg_env.library import datasets, registry, worker_jobs
from rg_env.reward.score import as_unit
from tools.answer_texts.formatting import FORMATTING
from tools.answer_texts.near_misses import overrated_misses
from tools.answer_texts.sampled_items import (
    SampledItem,
    attempted,
    levels_of,
    rows_of_tasks,
    sampled_items,
)
from tools.tables import markdown

FIRST_SEED = 15_000_001
DEADLINE_S = 10
"""For one answer; the value is 0 after that."""


def full_scores(item: SampledItem, answer: str) -> dict[str, bool]:
    """Return whether each scorer gives 1.0; it may raise, or take too long."""
    dataset = datasets.scoring_dataset(item.task, item.params)
    score = worker_jobs.score_answers
    library = attempted(
        DEADLINE_S, lambda: as_unit(dataset.score_answer(answer, dict(item.entry)))
    )
    ours = attempted(
        DEADLINE_S, lambda: score(item.task, item.params, item.entry, [answer])[0][0]
    )
    return {"library": library == 1.0, "ours": ours == 1.0}


def measure(task: str, items: int, languages: Sequence[str]) -> list[Mapping[str, Any]]:
    """Return for each item and formatting whether the scorers score it in full."""
    rows: list[Mapping[str, Any]] = []
    levels = [params_of for _, params_of in levels_of(task)]
    in_languages = [lambda seed, at=one: {"languages": at} for one in languages]
    for place, params_of in enumerate(in_languages or levels):
        first_seed = FIRST_SEED + 1_000_003 * place
        sampled = sampled_items(task, first_seed, params_of)
        made = list(itertools.islice(sampled, items))
        misses = overrated_misses(made, 1)
        rows += [{"task": task, "formatting": m, "ours": False} for m in misses]
        for item in made:
            for name, write in FORMATTING.items():
                text = write(item.right)
                if text is not None:
                    row = {"task": task, "formatting": name}
                    rows.append(row | full_scores(item, text.strip()))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--tasks", nargs="+", help="only these")
    parser.add_argument("--items", type=int, default=10, help="of a task and level")
    parser.add_argument("--languages", nargs="+", default=[], help="instead of levels")
    options = parser.parse_args()
    job = functools.partial(measure, items=options.items, languages=options.languages)
    described = registry.describe().tasks.items()
    able = [t for t, i in described if {*options.languages} <= {*i.languages}]
    rows = rows_of_tasks(job, options.tasks or able)
    mean = pl.col("library", "ours").mean()
    by_form = rows.group_by("task", "formatting", maintain_order=True).agg(mean)
    by_task = by_form.group_by("task", maintain_order=True).agg(mean)
    shown = {
        "Mean of all tasks": by_task.select(mean),
        "Tasks": by_task,
        "Less than 0.8 in full with ours": by_form.filter(pl.col("ours") < 0.8),
    }
    print(markdown(shown))


if __name__ == "__main__":
    main()
