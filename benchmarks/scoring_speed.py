"""CPU time of scoring groups: normalized beside exact and beside no corrections.

    python benchmarks/scoring_speed.py [--items 4] [--rounds 5] [--json FILE]

Items of every task at the library's defaults and at level 0.5, and to each of them
answers of four kinds: right, wrong (another item's, and one with another digit or
backwards), right in a dress (bold, and a sentence with a box), wrong in a dress. Eight
answers of one kind are a group. Each is scored under each setting in turn, in this
process, as a worker does it; the setting that begins changes from round to round, and
the fastest round counts. Making items and the way to a worker are not part of it. The
mixture is half right and half wrong, a quarter of either in a dress.

- normalized: `normalize_answers: true`, the default;
- exact: `normalize_answers: false`;
- no fixes: `normalize_answers: false` and `scorer_fixes: false`, the library's scorers
  behind our guards.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rg_env.items import worker_jobs
from rg_env.scoring.scoring_rules import ScoringRules
from rg_env.tasks import library
from tools.answer_texts.near_changes import CHANGES, other_answer
from tools.answer_texts.sampled_items import DEFAULTS, SampledItem, sampled_items

FIRST_SEED = 17_000_000
LEVELS = (DEFAULTS, 0.5)
SETTINGS = {
    "normalized": ScoringRules(),
    "exact": ScoringRules(normalize_answers=False),
    "no fixes": ScoringRules(normalize_answers=False, scorer_fixes=False),
}
MIXTURE = {"right": 3, "wrong": 3, "right, dressed": 1, "wrong, dressed": 1}
"""Answers of each kind in a group of eight."""

SHOWN = 12
"""Tasks whose normalizing takes most time."""

Times = dict[str, dict[str, float]]
"""Kind of answer and setting to CPU milliseconds of a group."""


def answers_to(item: SampledItem, others: list[str]) -> dict[str, list[str]]:
    """Return two answers of each kind to an item."""
    chance = random.Random(item.seed)
    right, other = item.right, other_answer(item.right, others, chance)
    changed = CHANGES["another digit"](right, other, chance) or f"{right[::-1]}x"
    wrong = other or "x"
    return {
        "right": [right],
        "wrong": [wrong, changed],
        "right, dressed": [f"**{right}**", f"The answer is $\\boxed{{{right}}}$."],
        "wrong, dressed": [f"**{wrong}**", f"The answer is $\\boxed{{{changed}}}$."],
    }


def measure(task: str, items: int, rounds: int) -> Times:
    """Return the CPU milliseconds of a group of eight answers of a kind."""
    asked = sampled_items(task, LEVELS, items, FIRST_SEED)
    groups = [
        (item, answers_to(item, [o.right for o in asked if o is not item]))
        for item in asked
    ]
    fastest = {kind: dict.fromkeys(SETTINGS, float("inf")) for kind in MIXTURE}
    names = list(SETTINGS)
    for turn in range(rounds + 1):
        for name in names[turn % 3 :] + names[: turn % 3]:
            for kind, row in fastest.items():
                began = time.process_time()
                for item, answers in groups:
                    group = answers[kind] * (8 // len(answers[kind]))
                    with contextlib.redirect_stdout(io.StringIO()):
                        worker_jobs.score_answers(
                            task, item.params, item.entry, group, SETTINGS[name]
                        )
                spent = 1000 * (time.process_time() - began) / max(1, len(groups))
                if turn:  # the first is for what is loaded once
                    row[name] = min(row[name], spent)
    return fastest


def mixed(times: Times) -> dict[str, float]:
    """Return what a group of the mixture takes, by setting."""
    return {
        name: sum(share * times[kind][name] for kind, share in MIXTURE.items()) / 8
        for name in SETTINGS
    }


def line(head: str, row: dict[str, float]) -> str:
    """Return a line of the table: milliseconds, and normalized by the others."""
    cells = "".join(f"{row[name]:12.3f}" for name in SETTINGS)
    ratios = (row["normalized"] / row[name] for name in ("exact", "no fixes"))
    return f"{head:28}{cells}" + "".join(f"{ratio:12.2f}" for ratio in ratios)


def mean(rows: list[dict[str, float]]) -> dict[str, float]:
    """Return the mean of rows by setting."""
    return {name: sum(row[name] for row in rows) / len(rows) for name in SETTINGS}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--tasks", nargs="+", help="only these")
    add("--items", type=int, default=4, help="of a task and level")
    add("--rounds", type=int, default=5, help="of each setting")
    add("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    tasks = options.tasks or list(library.describe().tasks)
    found = {}
    for number, task in enumerate(tasks, 1):
        print(f"\r{number}/{len(tasks)} {task:30}", end="", file=sys.stderr)
        found[task] = measure(task, options.items, options.rounds)
    print(file=sys.stderr)
    whole = {task: mixed(times) for task, times in found.items()}
    heads = (*SETTINGS, "by exact", "by no fixes")
    print(f"{'CPU ms a group of 8':28}" + "".join(f"{head:>12}" for head in heads))
    for task in sorted(whole, key=lambda t: whole[t]["exact"] - whole[t]["normalized"])[
        :SHOWN
    ]:
        print(line(task, whole[task]))
    for kind in MIXTURE:
        rows = [times[kind] for times in found.values()]
        print(line(f"all tasks, {kind}", mean(rows)))
    print(line("all tasks, mixture", mean(list(whole.values()))))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
