"""number_format: the largest or smallest of some numbers."""

from __future__ import annotations

from rg_env.task_rules.reading.numbers import written_plainly
from rg_env.task_rules.rules import (
    NEARLY,
    Entry,
    ItemCheck,
    LevelRepair,
    LibraryScore,
    ScorerFix,
    TaskRules,
)

NOISE = 1e-6
"""The rounding error of candidates that have nine digits before the point."""

SAME_NUMBER = 1e-5
"""Candidates of number_format are floats of nine digits before the point."""


def _candidate(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score the right candidate of the question, and no other.

    The library's numbers have noise in their last digits, which not all that is shown
    of them has: `940803934.563` for 940803934.5630001.
    """
    value, metadata = library(answer), entry["metadata"]
    if value < 1.0:
        return value
    found, solution = float(answer.replace(",", "")), metadata["solution"]
    meant = {n for n in metadata.get("candidates", []) if abs(n - found) < NOISE}
    return value if meant == {solution} or found == solution else NEARLY


def _reads_alike(entry: Entry) -> bool:
    shown = entry["metadata"]["formatted_candidates"]
    numbers = [float(number.replace(",", "")) for number in shown]
    return max(numbers) - min(numbers) < SAME_NUMBER


RULES = TaskRules(
    "number_format",
    notation=written_plainly,
    fix=ScorerFix(
        scorer_sha256="661dda4216e791dfc785767b986aab4a537cd34bf7f6f724e826160f9384a856",
        fault="Any number within 0.01 of the right candidate scores 1.0.",
        score=_candidate,
    ),
    item_checks=(
        ItemCheck("candidates are one number at the digits shown", _reads_alike),
    ),
    level_repair=LevelRepair(
        {2: {"max_delta": 1.0}, 3: {"max_delta": 0.1}},
        "levels 2 and 3 ask for numbers that differ in fewer decimals than the three"
        " that are made, so that any of them is right",
    ),
)
