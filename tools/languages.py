"""The rewards of the multilingual version of reasoning-gym, by task and language.

    python -m tools.languages [--tasks gcd ...] [--languages de ja] [--items 20]

It is installed instead of the usual one: its name is the same. For each language of
each translated task, the table has the items, those whose reference answer scores less
than 1.0, those that are not sampled, and the share of right answers in other formatting
that score 1.0. The faults are listed below it: errors, and wrong answers near the right
one (of the first items) that score above a half. The exit status is 1 if there are any.
"""

from __future__ import annotations

import argparse
import functools
import random
import statistics
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rg_env.library import datasets, registry, worker_jobs
from tools.answer_texts.formatting import FORMATTING
from tools.answer_texts.near_misses import overpaid
from tools.answer_texts.sampled_items import (
    SampledItem,
    attempted,
    right_answer,
    rows_of_tasks,
)
from tools.tables import markdown

FIRST_SEED = 5_000
LIMIT_S = 20
"""For making an item."""

MOST_SEEDS = 8
"""Seeds tried for each item that is wanted."""

NEAR = 2
"""Items whose right answer is formatted and changed."""

LONGEST = 500
"""Near misses of a longer right answer take long and say no more."""


def _made(
    task: str, language: str, items: int
) -> tuple[list[SampledItem], Counter[str]]:
    params = {"languages": language}
    found: list[SampledItem] = []
    lost: Counter[str] = Counter()
    for seed in range(FIRST_SEED, FIRST_SEED + MOST_SEEDS * items):
        entry = attempted(LIMIT_S, datasets.make_entry, task, params, seed)
        if isinstance(entry, Exception):
            is_refused = isinstance(entry, datasets.UnusableEntryError)
            lost["not sampled" if is_refused else registry.cause_of(entry)] += 1
        elif right := right_answer(task, entry):
            found.append(SampledItem(task, seed, params, entry, right))
        if len(found) == items:
            break
    return found, lost


def _values(item: SampledItem, texts: Sequence[str]) -> list[float]:
    rows = worker_jobs.score_answers(item.task, item.params, item.entry, texts)
    return [row[0] for row in rows]


def audit(task: str, languages: Sequence[str], items: int) -> list[Mapping[str, Any]]:
    """Return the numbers and the faults of a task in each language."""
    rows: list[Mapping[str, Any]] = []
    for language in languages:
        made, lost = _made(task, language, items)
        faults = [f"{count} x {why}" for why, count in lost.items() if "Error" in why]
        low = [item for item in made if _values(item, [item.right]) != [1.0]]
        faults += [f"reference answer {item.right[:60]!r}" for item in low]
        written = []
        chance = random.Random(task)
        for item in made[:NEAR]:
            texts = [form(item.right) for form in FORMATTING.values()]
            chosen = chance.sample([t for t in texts if t], k=20)
            written += [value == 1.0 for value in _values(item, chosen)]
        short = [item for item in made if len(item.right) <= LONGEST]
        faults += overpaid(short[: NEAR + 2], NEAR)
        rows.append(
            {
                "task": task,
                "language": language,
                "items": len(made),
                "low": len(low),
                "lost": lost["not sampled"],
                "formatted": statistics.fmean(written) if written else 0.0,
                "faults": [f"{task} {language}: {fault}" for fault in faults],
            }
        )
    return rows


def main() -> int:
    described = registry.describe().tasks
    translated = {t: i.languages for t, i in described.items() if len(i.languages) > 1}
    every = sorted({one for languages in translated.values() for one in languages})
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--tasks", nargs="+", default=list(translated), metavar="TASK")
    parser.add_argument("--languages", nargs="+", default=every, choices=every)
    parser.add_argument("--items", type=int, default=20, help="of a task and language")
    chosen = parser.parse_args()
    job = functools.partial(audit, languages=chosen.languages, items=chosen.items)
    rows = rows_of_tasks(job, chosen.tasks)
    faults = rows["faults"].explode().drop_nulls().to_list()
    print(markdown({"Languages": rows.drop("faults")}), *faults, sep="\n")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
