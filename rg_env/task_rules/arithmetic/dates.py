"""Rules of calendar_arithmetic and time_intervals."""

from __future__ import annotations

from datetime import datetime

from rg_env.task_rules.one_rule import one_answer
from rg_env.task_rules.rules import (
    Entry,
    ItemCheck,
    TaskRules,
)

# -- calendar_arithmetic ---------------------------------------------------------------


def _is_in_another_year(entry: Entry) -> bool:
    """Return whether the question gives the second date the year of the first."""
    metadata = entry["metadata"]
    is_asked = metadata["task"] == "count_business_days"
    return is_asked and bool(metadata["start_date"][:4] != metadata["end_date"][:4])


def _needs_leap_year(entry: Entry) -> bool:
    metadata = entry["metadata"]
    is_asked = metadata["task"] == "weekday_of_date_from_first_date"
    return is_asked and int(metadata["target_date"][5:7]) > 2


CALENDAR_ARITHMETIC = TaskRules(
    "calendar_arithmetic",
    fix=one_answer(),
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


def _is_cut_off(entry: Entry) -> bool:
    """Return whether an answer leaves out seconds or is a millisecond short.

    The library computes milliseconds from a float, so 0.463 may become 462.
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
    fix=one_answer(partial_credit=False, passed_over="d day days"),
    item_checks=(
        ItemCheck(
            "answer leaves out the time of day, which stands behind a weekday",
            # The library truncates both times at the first " (".
            lambda entry: "(%A) %H" in entry["metadata"]["format"],
        ),
        ItemCheck(
            "answer is below zero, because its second time is the earlier one",
            lambda entry: entry["answer"].startswith("-"),
        ),
        ItemCheck("answer leaves out seconds, or a millisecond", _is_cut_off),
    ),
)
