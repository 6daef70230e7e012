"""Rules of calendar_arithmetic and time_intervals."""

from __future__ import annotations

import re
from math import exp

from rg_env.task_rules.rules import (
    Entry,
    ItemCheck,
    LibraryScore,
    ScorerFix,
    TaskRules,
    partial_credit,
)

# -- calendar_arithmetic ---------------------------------------------------------------

A_FIFTH_OFF = exp(-1)
"""What the library gives for a count that is off by a fifth.

A constant is off by more as a rule, and had 0.34 of counts at the best.
"""


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


CALENDAR_ARITHMETIC = TaskRules(
    "calendar_arithmetic",
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


# -- time_intervals --------------------------------------------------------------------

TIME_CREDIT_FROM = 0.9
"""Up to this a time interval scores 0.

The library's score is 1 - error / largest possible difference, so that 50 of 100 days
score 0.75 on average. From here on a constant is near one answer in five at most.
"""

_DAYS = re.compile(r"(?:-(?=[1-9]))?\d+(?:\s+days?)?\.?")
_CLOCK = re.compile(r"\d+:\d+(?::\d+(?:\.\d+)?)?")
_DAYS_AND_CLOCK = re.compile(rf"(?:-(?=[1-9]))?\d+ days,\s*{_CLOCK.pattern}")


def _interval(answer: str, entry: Entry, library: LibraryScore) -> float:
    kind = entry["metadata"]["task_type"]
    form = _DAYS_AND_CLOCK
    if kind == "date":
        form = _DAYS
    elif kind.startswith("time"):
        form = _CLOCK
    if not form.fullmatch(answer.strip()):
        return 0.0
    value = library(answer)
    return value if value == 1.0 else partial_credit(value, TIME_CREDIT_FROM)


TIME_INTERVALS = TaskRules(
    "time_intervals",
    fix=ScorerFix(
        scorer_sha256="1ae24e969375fd66478c6046c7d4c7353da9c7955273617a594f925d149bb361",
        fault="The middle of the range scores 0.75 on average, an hour off 0.96;"
        " what follows the first interval is ignored.",
        score=_interval,
    ),
    item_checks=(
        ItemCheck(
            "answer leaves out the time of day, which stands behind a weekday",
            # The library cuts what it compares at the first " (".
            lambda entry: "(%A) %H" in entry["metadata"]["format"],
        ),
        ItemCheck(
            "answer is below zero, because its second time is the earlier one",
            lambda entry: entry["answer"].startswith("-"),
        ),
    ),
)
