"""Rules of the arithmetic tasks."""

from __future__ import annotations

import decimal
import re
from datetime import datetime

from rg_env.task_rules.one_rule import one_answer
from rg_env.task_rules.reading.numbers import exact_value, is_same_number
from rg_env.task_rules.rules import (
    Entry,
    ItemCheck,
    LevelRepair,
    LibraryScore,
    ScorerFix,
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


# -- decimal_arithmetic ----------------------------------------------------------------

_DIGITS_ASKED_FOR = re.compile(r"maximum of (\d{1,2}) significant digits")


def _rounded_as_asked(question: str) -> decimal.Decimal | None:
    """Return the value of a question, rounded once at the end, as it asks."""
    asked = _DIGITS_ASKED_FOR.search(question)
    exact = exact_value(question.rpartition("\n")[2].partition("=")[0])
    if asked is None or exact is None:
        return None
    rounding = decimal.Context(int(asked[1]), decimal.ROUND_HALF_UP)
    return rounding.divide(
        decimal.Decimal(exact.numerator), decimal.Decimal(exact.denominator)
    )


def _all_digits(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score a number in all digits that its question asks for.

    The library rounds after every operation, so its last digits differ in one item of
    16. Both results are right then.
    """
    value = library(answer)
    if value < 1.0:
        return value / 2
    right = (entry["answer"], str(_rounded_as_asked(entry["question"])))
    return float(any(is_same_number(answer, number) for number in right))


DECIMAL_ARITHMETIC = TaskRules(
    "decimal_arithmetic",
    fix=ScorerFix(
        fault="Numbers within 0.001 score 1.0 where 12 digits are required.",
        score=_all_digits,
    ),
)


# -- gsm_symbolic ----------------------------------------------------------------------

_STEP = re.compile(r"([\d.]+(?:\s*[-+*/]\s*[\d.]+)+)\s*=\s*(\d+)(?![\d.])")
"""A step of the library's solution, `5*0.5=2`, with a whole number."""


def _rounds_down(entry: Entry) -> bool:
    steps = _STEP.findall(entry["metadata"]["answer_cot"])
    values = [(exact_value(sides), int(whole)) for sides, whole in steps]
    return any(v is not None and v // 1 == n != v for v, n in values)


GSM_SYMBOLIC = TaskRules(
    "gsm_symbolic",
    fix=one_answer(),
    item_checks=(ItemCheck("solution rounds a part of a thing down", _rounds_down),),
    fixed_level=(
        "the library has no curriculum for it, and its difficulty takes"
        " the value 1.0 alone"
    ),
    is_rebuilt=True,
)


# -- number_format ---------------------------------------------------------------------

# The rounding error of candidates, which have nine digits before the point.
NOISE = 1e-6

# Candidates that differ by less are the same number.
SAME_NUMBER = 1e-5


def _candidate(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score the right candidate of the question, and no other.

    The library's numbers have noise in their last digits, which the question may not
    show: `940803934.563` for 940803934.5630001.
    """
    metadata = entry["metadata"]
    value = library(answer)
    if value < 1.0:
        return value
    match = float(answer.replace(",", ""))
    solution = metadata["solution"]
    meant = {n for n in metadata.get("candidates", []) if abs(n - match) < NOISE}
    return float(meant == {solution} or match == solution)


def _reads_alike(entry: Entry) -> bool:
    candidates = entry["metadata"]["formatted_candidates"]
    numbers = [float(number.replace(",", "")) for number in candidates]
    return max(numbers) - min(numbers) < SAME_NUMBER


NUMBER_FORMAT = TaskRules(
    "number_format",
    fix=ScorerFix(
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
    fix=one_answer(partial_credit=False, ignored="d day days"),
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
