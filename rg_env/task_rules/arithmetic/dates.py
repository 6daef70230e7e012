"""Rules of calendar_arithmetic and time_intervals."""

from __future__ import annotations

import re
from datetime import datetime
from math import exp

from rg_env.task_rules.reading.numbers import as_number
from rg_env.task_rules.reading.words import in_any_case, of_short_text
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
    notation=lambda answer, entry: in_any_case(as_number(answer, entry), entry),
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
_SPAN = re.compile(
    r"\+?(?P<days>-?\d{1,9})"
    r"(?:\s*(?:days?|d(?:\s+days?)?)\s*(?:,|and|,\s*and)?\s*|\s+(?=\d+:))"
    r"(?P<clock>[\d:.]{4,20})?\s*,?",
    re.IGNORECASE,
)


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


def _as_days_and_clock(answer: str, entry: Entry) -> str:
    """Write a span as `D days` and a clock, whichever of the two it has."""
    kind = str(entry.get("metadata", {}).get("task_type", ""))
    span = _SPAN.fullmatch(answer)
    if span is None:
        return answer
    days = f"{int(span['days'])} days"
    if kind == "date":
        return days if span["clock"] is None else answer
    return answer if span["clock"] is None else f"{days}, {span['clock']}"


def _is_cut_off(entry: Entry) -> bool:
    """Say whether an answer leaves out a part of the difference, or a millisecond.

    The library takes milliseconds from a float, so that 0.463 may become 462.
    """
    metadata = entry["metadata"]
    start, end = (
        datetime.fromisoformat(metadata[name]) for name in ("start_time", "end_time")
    )
    took = end - start
    if metadata["expected_format"].endswith("mmm"):
        return took.microseconds != 1000 * int(entry["answer"][-3:])
    return metadata["expected_format"].endswith("HH:MM") and took.seconds % 60 > 0


TIME_INTERVALS = TaskRules(
    "time_intervals",
    notation=of_short_text(_as_days_and_clock),
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
        ItemCheck("answer leaves out seconds, or a millisecond", _is_cut_off),
    ),
)
