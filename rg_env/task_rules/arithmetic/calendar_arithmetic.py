"""calendar_arithmetic: a day of the week, a count or a verdict on a year."""

from __future__ import annotations

from math import exp

from rg_env.task_rules.partial_credit import partial_credit
from rg_env.task_rules.reading.notation import of_short_text
from rg_env.task_rules.reading.numbers import as_number
from rg_env.task_rules.reading.words import as_verdict
from rg_env.task_rules.rules import (
    Entry,
    ItemCheck,
    LibraryScore,
    ScorerFix,
    TaskRules,
)

A_FIFTH_OFF = exp(-1)
"""What the library gives for a count that is off by a fifth.

A constant is off by more as a rule, and had 0.34 of counts at the best.
"""


def _as_asked(answer: str, entry: Entry) -> str:
    """Return a day of the week, a count or a verdict on a year as it is asked for."""
    gold = entry.get("answer")
    if isinstance(gold, str) and gold.lstrip("-").isdigit():
        return as_number(answer, entry)
    return as_verdict(answer.removeprefix("a ").removeprefix("on a "), entry)


def _is_in_another_year(entry: Entry) -> bool:
    """Say whether the question names the second date with the year of the first."""
    metadata = entry["metadata"]
    is_asked = metadata["task"] == "count_business_days"
    return is_asked and bool(metadata["start_date"][:4] != metadata["end_date"][:4])


def _needs_leap_year(entry: Entry) -> bool:
    metadata = entry["metadata"]
    is_asked = metadata["task"] == "weekday_of_date_from_first_date"
    return is_asked and int(metadata["target_date"][5:7]) > 2


def _day_or_count(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score a count that is off by less than a fifth, and no other weekday."""
    value = library(answer)
    return value if value == 1.0 else partial_credit(value, A_FIFTH_OFF)


RULES = TaskRules(
    "calendar_arithmetic",
    notation=of_short_text(_as_asked),
    fix=ScorerFix(
        scorer_sha256="f201391da152c94faeea8e61cc3df33af60fca5f2248e239ac1286896924f30a",
        fault="A count that is off by one of 62 scores 0.92, a constant count 0.34.",
        score=_day_or_count,
    ),
    item_checks=(
        ItemCheck(
            "question names the second date with the wrong year", _is_in_another_year
        ),
        ItemCheck(
            "question does not say whether the year is a leap year", _needs_leap_year
        ),
    ),
)
