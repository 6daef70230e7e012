"""Entries whose answer is not the right one, not the only one or cannot be known.

docs/gold_answers.md says how many of each task they are, and what was measured with.
"""

from __future__ import annotations

import datetime
from collections import Counter

from rg_env.task_rules.item_checks.item_check import Entry, ItemCheck

SAME_NUMBER = 1e-5
"""Candidates of number_format are floats of nine digits before the point."""


def _counts_other_case(entry: Entry) -> bool:
    metadata = entry["metadata"]
    letter = metadata["target_letter"]
    counted = sum(word.count(letter) for word in metadata["span"])
    return bool(counted != int(entry["answer"]))


def _reads_alike(entry: Entry) -> bool:
    shown = entry["metadata"]["formatted_candidates"]
    numbers = [float(number.replace(",", "")) for number in shown]
    return max(numbers) - min(numbers) < SAME_NUMBER


def _keeps_another_spelling(entry: Entry) -> bool:
    """Say whether more of a number is kept than stands in the list, so written."""
    metadata = entry["metadata"]
    return bool(Counter(metadata["result"]) - Counter(metadata["original_numbers"]))


def _is_in_another_year(entry: Entry) -> bool:
    """Say whether the second date stands in the question with the year of the first."""
    metadata = entry["metadata"]
    if metadata["task"] != "count_business_days":
        return False
    return bool(metadata["start_date"][:4] != metadata["end_date"][:4])


def _needs_leap_year(entry: Entry) -> bool:
    metadata = entry["metadata"]
    if metadata["task"] != "weekday_of_date_from_first_date":
        return False
    return datetime.date.fromisoformat(metadata["target_date"]).month > 2


CHECKS: tuple[ItemCheck, ...] = (
    ItemCheck(
        "calendar_arithmetic",
        "question names the second date with the wrong year",
        _is_in_another_year,
    ),
    ItemCheck(
        "calendar_arithmetic",
        "question does not say whether the year is a leap year",
        _needs_leap_year,
    ),
    ItemCheck(
        "game_of_life_halting",
        "question shows three dots in the place of most cells",
        lambda entry: "..." in entry["question"],
    ),
    ItemCheck(
        "jugs",
        "answer is that there is none, because the library searches with all jugs"
        " and solves with the first three",
        lambda entry: bool(entry["answer"] == '["No solution"]'),
        always=True,
    ),
    ItemCheck(
        "letter_counting",
        "answer counts capital letters, of which the question says nothing",
        _counts_other_case,
    ),
    ItemCheck(
        "number_filtering",
        "answer writes a number as another one of the list is written",
        _keeps_another_spelling,
    ),
    ItemCheck(
        "number_format",
        "candidates are one number at the digits shown",
        _reads_alike,
    ),
    ItemCheck(
        "time_intervals",
        "answer is below zero, because its second time is the earlier one",
        lambda entry: entry["answer"].startswith("-"),
    ),
)
"""In the order of the tasks' names; a later one of a task may rely on an earlier."""
