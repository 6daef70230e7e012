"""coin_flip: probabilities."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

from rg_env.task_rules.rules import (
    Entry,
    Guard,
    LevelRepair,
    LibraryScore,
    ScorerFix,
    TaskRules,
)

_LARGE_EXPONENT = re.compile(r"[eE][-+]?[\d_]{4}")


def _why_not(answer: str, gold: str | None) -> str | None:
    """Return why an answer is rejected: `Fraction("1e9999999")` computes the power."""
    is_large = _LARGE_EXPONENT.search(answer.replace(",", ""))  # as the library does
    return "an exponent of more than 3 digits" if is_large else None


_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,40})?)\s*\\?(?:%|percent)")


def _as_probability(answer: str, entry: Entry) -> str:
    """Write `12.5%` as `0.125`."""
    percentage = _PERCENT.fullmatch(answer)
    return f"{Decimal(percentage[1]) / 100:f}" if percentage else answer


_PROBABILITY = re.compile(
    r"\+?(?:\d{0,9}\.\d{1,40}|\d{1,9}\.?)(?:[eE][+-]?\d{1,2})?"
    r"|\+?\d{1,12}\s*/\s*\d{1,12}"
)

ABSOLUTE_TOLERANCE = Fraction(1, 10_000)
"""The library's tolerance."""

RELATIVE_TOLERANCE = Fraction(1, 20)
"""For small probabilities, because the absolute tolerance makes 0 right."""


def _is_rounded(text: str, value: Fraction, exact: Fraction) -> bool:
    """Return whether a number is the exact one, rounded to its decimal places."""
    if "/" in text:
        return False
    mantissa, _, exponent = text.lower().partition("e")
    decimals = len(mantissa.partition(".")[2]) - int(exponent or 0)
    unit = Fraction(10) ** -decimals
    return abs(value - exact) <= unit / 2


def _exact_probability(entry: Entry) -> Fraction:
    """Return the exact probability; the gold answer has only ten digits."""
    if exact := entry["metadata"].get("rational"):
        return Fraction(exact["numerator"], exact["denominator"])
    return Fraction(entry["answer"])


def _score_probability(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score the right probability, exact or rounded to the decimals that it has.

    The library's tolerance makes 0 right for small probabilities, and its credit for a
    common prefix makes `0` and `0.` nearly always right.
    """
    text = answer.replace(",", "").strip()
    if not _PROBABILITY.fullmatch(text):
        return 0.0
    try:
        number = Fraction(text.replace(" ", ""))
        gold = Fraction(entry["answer"])
    except (ValueError, ZeroDivisionError):
        return 0.0
    exact = _exact_probability(entry)
    if number in (gold, exact):
        return 1.0
    tolerance = min(ABSOLUTE_TOLERANCE, gold * RELATIVE_TOLERANCE)
    is_near = abs(number - gold) <= tolerance
    return float(is_near and _is_rounded(text, number, exact))


COIN_FLIP = TaskRules(
    "coin_flip",
    # The scorer converts an answer to a Fraction, which computes 10**exponent.
    guard=Guard(_why_not),
    notation=_as_probability,
    fix=ScorerFix(
        fault=(
            "Compares only as many characters as the shorter number has: 0 mostly gets"
            " 1.0, and a number that is off by 1 % scores 0.9."
        ),
        score=_score_probability,
    ),
    level_repair=LevelRepair(
        {level: {"max_trials": 5} for level in (0, 1)},
        "level 0 has 8 different questions, and 0.125 is right in 45 of 100 items",
    ),
)
