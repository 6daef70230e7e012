"""coin_flip: probabilities."""

from __future__ import annotations

import itertools
import re
from decimal import Decimal
from fractions import Fraction

from rg_env.task_rules.rules import (
    MOST_FOR_A_WRONG_ANSWER,
    Entry,
    Guard,
    LevelRepair,
    LibraryScore,
    ScorerFix,
    TaskRules,
)

_LARGE_EXPONENT = re.compile(r"[eE][-+]?[\d_]{4}")


def _large_exponent(answer: str, gold: str | None) -> str | None:
    """Say why not; `Fraction("1e9999999")` computes ten to that power."""
    is_large = _LARGE_EXPONENT.search(answer.replace(",", ""))  # as the library does
    return "an exponent of more than 3 digits" if is_large else None


_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,40})?)\s*\\?(?:%|percent)")


def _as_probability(answer: str, entry: Entry) -> str:
    """Write percents as hundredths."""
    percents = _PERCENT.fullmatch(answer)
    return f"{Decimal(percents[1]) / 100:f}" if percents else answer


_PROBABILITY = re.compile(
    r"\+?(?:\d{0,9}\.\d{1,40}|\d{1,9}\.?)(?:[eE][+-]?\d{1,2})?"
    r"|\+?\d{1,12}\s*/\s*\d{1,12}"
)

CLOSE = Fraction(1, 100)
"""How far from the right probability, relative to it, is close to it."""

TOLERANCE = Fraction(1, 10_000)
"""How far from the right probability the library takes a number for right."""

NEARLY_EXACT = Fraction(1, 20)
"""How far that may be, relative to the right probability, so that 0 is not right."""


def _is_rounded(text: str, value: Fraction, exact: Fraction) -> bool:
    """Say whether a number is the exact one to as many places as it is written with."""
    if "/" in text:
        return False
    mantissa, _, exponent = text.lower().partition("e")
    places = len(mantissa.partition(".")[2]) - int(exponent or 0)
    unit = Fraction(10) ** -places
    return abs(value - exact) <= unit / 2


def _exactly(entry: Entry) -> Fraction:
    """Return the right probability; the gold answer has ten digits of it."""
    if exact := entry["metadata"].get("rational"):
        return Fraction(exact["numerator"], exact["denominator"])
    return Fraction(entry["answer"])


def _digits(number: Fraction) -> str:
    """Return the decimals of a number below 1 without the zeros at the end."""
    return f"{float(number):.10f}"[2:].rstrip("0")


def _probability(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score a probability; close is relative to the right one.

    The library's tolerance makes 0 right for small probabilities, and its credit for
    a common beginning is a share of the shorter number, so that `0` and `0.` are nearly
    always right. Beyond 1 % it is a share of both, which is below a half.
    """
    text = answer.replace(",", "").strip()
    if not _PROBABILITY.fullmatch(text):
        return 0.0
    try:
        number, gold = Fraction(text.replace(" ", "")), Fraction(entry["answer"])
    except (ValueError, ZeroDivisionError):
        return 0.0
    value, distance = library(answer), abs(number - gold)
    is_near = distance <= min(TOLERANCE, gold * NEARLY_EXACT)
    if is_near or distance <= gold * CLOSE:
        exact = _exactly(entry)
        is_rounded = is_near and _is_rounded(text, number, exact)
        is_right = is_rounded or number in (gold, exact)
        return value if is_right else min(value, MOST_FOR_A_WRONG_ANSWER)
    if not 0 < number < 1 or not 0 < gold < 1:
        return 0.0
    a, b = _digits(number), _digits(gold)
    pairs = zip(a, b, strict=False)
    same = list(itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    return min(value, len(same) / max(1, len(a) + len(b)))


COIN_FLIP = TaskRules(
    "coin_flip",
    # The scorer converts an answer to a Fraction, which computes 10**exponent.
    guard=Guard(_large_exponent),
    notation=_as_probability,
    fix=ScorerFix(
        fault=(
            "Compares only as many characters as the shorter number has: 0 mostly gets"
            " 1.0, and a number that is off by 1 % scores 0.9."
        ),
        score=_probability,
    ),
    level_repair=LevelRepair(
        {level: {"max_trials": 5} for level in (0, 1)},
        "level 0 has 8 different questions, and 0.125 is right in 45 of 100 items",
    ),
)
