"""The rewards of the multilingual version of reasoning-gym, by task and language.

    python -m tools.languages [--tasks gcd ...] [--languages de ja] [--items 20]

It is installed instead of the usual one: its name is the same. For each language of
each translated task, the table has the items, those whose reference answer scores less
than 1.0, those that are not sampled, and the share of right answers in other formatting
that score 1.0. The faults are listed below it: errors, and wrong answers near the right
one (of the first items, see `--near`) that score above a half. The exit status is 1 if
there are any.
"""

from __future__ import annotations

import argparse
import functools
import random
import statistics
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

from rg_env.library import datasets, registry, worker_jobs
from rg_env.reward.score import DEFAULT_RULES
from tools.answer_texts.formatting import FORMATTING
from tools.answer_texts.near_misses import overpaid
from tools.answer_texts.sampled_items import (
    DEFAULTS,
    SampledItem,
    for_each_task,
    right_answer,
    time_limit,
)

FIRST_SEED = 5_000
LIMIT_S = 20
"""For making an item."""

MOST_SEEDS = 8
"""Seeds tried for each item that is wanted."""

LONGEST = 500
"""Near misses of a longer right answer take long and say no more."""


def _made(
    task: str, language: str, items: int
) -> tuple[list[SampledItem], Counter[str]]:
    params = {"languages": language}
    found: list[SampledItem] = []
    lost: Counter[str] = Counter()
    for seed in range(FIRST_SEED, FIRST_SEED + MOST_SEEDS * items):
        try:
            with time_limit(LIMIT_S):
                entry = datasets.make_entry(task, params, seed)
                right = right_answer(task, entry)
        except Exception as error:  # noqa: BLE001 - foreign code may raise anything
            is_refused = isinstance(error, datasets.UnusableEntryError)
            lost["not sampled" if is_refused else registry.cause_of(error)] += 1
            continue
        if right:
            found.append(SampledItem(task, DEFAULTS, seed, params, entry, right))
        if len(found) == items:
            break
    return found, lost


def _values(item: SampledItem, texts: Sequence[str]) -> list[float]:
    call = (item.task, dict(item.params), dict(item.entry), texts, DEFAULT_RULES)
    return [row[0] for row in worker_jobs.score_answers(*call)]


def audit(task: str, languages: Sequence[str], items: int, near: int) -> dict[str, Any]:
    """Return the numbers and the faults of a task, by language."""
    found = {}
    for language in languages:
        made, lost = _made(task, language, items)
        faults = [f"{count} x {why}" for why, count in lost.items() if "Error" in why]
        low = [item for item in made if _values(item, [item.right]) != [1.0]]
        faults += [f"reference answer {item.right[:60]!r}" for item in low]
        written = []
        chance = random.Random(task)
        for item in made[:near]:
            texts = [form(item.right) for form in FORMATTING.values()]
            chosen = chance.sample([t for t in texts if t], k=20)
            written += [value == 1.0 for value in _values(item, chosen)]
        short = [item for item in made if len(item.right) <= LONGEST]
        faults += overpaid(short[: near + 2], near)
        found[language] = (
            len(made),
            len(low),
            lost["not sampled"],
            statistics.fmean(written) if written else 0.0,
            faults,
        )
    return found


def main() -> int:
    described = registry.describe().tasks
    translated = {t: i.languages for t, i in described.items() if len(i.languages) > 1}
    every = sorted({one for languages in translated.values() for one in languages})
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--tasks", nargs="+", default=list(translated), metavar="TASK")
    parser.add_argument("--languages", nargs="+", default=every, choices=every)
    parser.add_argument("--items", type=int, default=20, help="of a task and language")
    parser.add_argument("--near", type=int, default=2, help="items with near misses")
    chosen = parser.parse_args()
    job = functools.partial(
        audit, languages=chosen.languages, items=chosen.items, near=chosen.near
    )
    results = for_each_task(job, chosen.tasks)
    print(
        f"{'task':28}{'language':>9}{'items':>7}{'low':>5}{'lost':>6}{'formatted':>11}"
    )
    faults = []
    for task, by_language in results.items():
        for language, (made, low, lost, formatted, of_it) in by_language.items():
            row = f"{task:28}{language:>9}{made:>7}{low:>5}{lost:>6}{formatted:>11.2f}"
            print(row)
            faults += [f"{task} {language}: {fault}" for fault in of_it]
    print(*faults, sep="\n")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
