"""Rules of the arithmetic tasks."""

from __future__ import annotations

import decimal
import re
from datetime import datetime

from rg_env.task_rules.answer_matching import one_answer
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


def _spans_two_years(entry: Entry) -> bool:
    """Return whether the question gives the second date the year of the first."""
    metadata = entry["metadata"]
    if metadata["task"] != "count_business_days":
        return False
    return bool(metadata["start_date"][:4] != metadata["end_date"][:4])


def _depends_on_leap_year(entry: Entry) -> bool:
    metadata = entry["metadata"]
    if metadata["task"] != "weekday_of_date_from_first_date":
        return False
    return int(metadata["target_date"][5:7]) > 2


CALENDAR_ARITHMETIC = TaskRules(
    "calendar_arithmetic",
    fix=one_answer(),
    item_checks=(
        ItemCheck(
            "question names the second date with the wrong year", _spans_two_years
        ),
        ItemCheck(
            "question does not say whether the year is a leap year",
            _depends_on_leap_year,
        ),
    ),
)


# -- decimal_arithmetic ----------------------------------------------------------------

_MAX_DIGITS = re.compile(r"maximum of (\d{1,2}) significant digits")


def _rounded_at_end(question: str) -> str:
    """Return the value of a question, rounded only at the end; "" if it has none."""
    digits = _MAX_DIGITS.search(question)
    exact = exact_value(question.rpartition("\n")[2].partition("=")[0])
    if digits is None or exact is None:
        return ""
    rounding = decimal.Context(int(digits[1]), decimal.ROUND_HALF_UP)
    return str(
        rounding.divide(
            decimal.Decimal(exact.numerator), decimal.Decimal(exact.denominator)
        )
    )


def _score_digits(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score a number in all digits that its question asks for.

    The library rounds after every operation, so its last digits may differ from those
    of the value that is rounded at the end, as in one item of 16. Both are right.
    """
    value = library(answer)
    if value < 1.0:
        return value / 2
    right = (entry["answer"], _rounded_at_end(entry["question"]))
    return float(any(is_same_number(answer, number) for number in right))


DECIMAL_ARITHMETIC = TaskRules(
    "decimal_arithmetic",
    fix=ScorerFix(
        fault="Numbers within 0.001 score 1.0 where 12 digits are required.",
        score=_score_digits,
    ),
)


# -- gsm_symbolic ----------------------------------------------------------------------

_STEP = re.compile(r"([\d.]+(?:\s*[-+*/]\s*[\d.]+)+)\s*=\s*(\d+)(?![\d.])")
"""A step of the library's solution, `5*0.5=2`, with a whole number."""


def _rounds_down(entry: Entry) -> bool:
    steps = _STEP.findall(entry["metadata"]["answer_cot"])
    values = [(exact_value(side), int(whole)) for side, whole in steps]
    return any(v is not None and v // 1 == whole != v for v, whole in values)


GSM_SYMBOLIC = TaskRules(
    "gsm_symbolic",
    fix=one_answer(),
    item_checks=(ItemCheck("solution rounds a fraction down", _rounds_down),),
    fixed_level=(
        "the library has no curriculum for it, and its difficulty takes"
        " only the value 1.0"
    ),
    is_rebuilt=True,
)


# -- number_format ---------------------------------------------------------------------

# The rounding error of candidates, which have nine digits before the point.
NOISE = 1e-6

# Candidates that differ by less are the same number.
SAME_NUMBER = 1e-5


def _score_candidate(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score only the right candidate of the question.

    The library's numbers have noise in their last digits, which the question may not
    show: `940803934.563` for 940803934.5630001.
    """
    metadata = entry["metadata"]
    value = library(answer)
    if value < 1.0:
        return value
    number = float(answer.replace(",", ""))
    solution = metadata["solution"]
    near = {n for n in metadata.get("candidates", []) if abs(n - number) < NOISE}
    return float(near == {solution} or number == solution)


def _shows_equal_candidates(entry: Entry) -> bool:
    candidates = entry["metadata"]["formatted_candidates"]
    numbers = [float(number.replace(",", "")) for number in candidates]
    return max(numbers) - min(numbers) < SAME_NUMBER


NUMBER_FORMAT = TaskRules(
    "number_format",
    fix=ScorerFix(
        fault="Any number within 0.01 of the right candidate scores 1.0.",
        score=_score_candidate,
    ),
    item_checks=(
        ItemCheck(
            "candidates are one number at the digits shown", _shows_equal_candidates
        ),
    ),
    level_repair=LevelRepair(
        {2: {"max_delta": 1.0}, 3: {"max_delta": 0.1}},
        "levels 2 and 3 ask for differences of at most 0.001, and the differences are"
        " rounded to three decimals, so that nearly any of the numbers is right",
    ),
)


# -- time_intervals --------------------------------------------------------------------


def _is_truncated(entry: Entry) -> bool:
    """Return whether an answer leaves out seconds or is a millisecond short.

    The library computes milliseconds from a float, so 0.463 may become 462.
    """
    metadata = entry["metadata"]
    start = datetime.fromisoformat(metadata["start_time"])
    duration = datetime.fromisoformat(metadata["end_time"]) - start
    if metadata["expected_format"].endswith("mmm"):
        return duration.microseconds != 1000 * int(entry["answer"][-3:])
    return metadata["expected_format"].endswith("HH:MM") and duration.seconds % 60 > 0


TIME_INTERVALS = TaskRules(
    "time_intervals",
    fix=one_answer(partial_credit=False, ignored="d day days"),
    item_checks=(
        ItemCheck(
            "answer leaves out the time of day, which follows the weekday",
            # The library truncates both times at the first " (".
            lambda entry: "(%A) %H" in entry["metadata"]["format"],
        ),
        ItemCheck(
            "answer is below zero, because its second time is the earlier one",
            lambda entry: entry["answer"].startswith("-"),
        ),
        ItemCheck("answer leaves out seconds, or a millisecond", _is_truncated),
    ),
)
