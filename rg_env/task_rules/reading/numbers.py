r"""Numbers as people and language models write them.

Some answers show the calculation, `8 + 12 = 20`, and some decimals have the noise of a
float in their last digits. These functions do no other arithmetic and no rounding. The
rule that compares an answer with the reference, `rg_env.task_rules.one_rule`, accepts
all other forms of a number.
"""

from __future__ import annotations

import decimal
import re
from decimal import Decimal

from rg_env.task_rules.reading.four_operations import exact_value
from rg_env.task_rules.reading.words import of_short_text
from rg_env.task_rules.rules import Entry

FLOAT_ERROR = 1e-6

# A float has 15 exact digits, and Python writes up to 17.
_NOISY = re.compile(r"(?=.{16,40}\Z)-?\d+\.(\d*?)(?:0{7,}[1-9]\d?|9{8,}\d?)")
_SIGNS = str.maketrans({"\u2212": "-", "\u00d7": "*", "\u00f7": "/"})
_FRACTION = re.compile(
    r"(?:\\[dt]?frac\s*\{\s*(-?\d+)\s*\}\s*\{\s*(\d+)\s*\}|(-?\d+)\s*/\s*(\d+))"
)


def is_rounded(written: str, exact: float, decimals: int) -> bool:
    """Return whether a number is `exact`, rounded to at least so many decimals.

    Raises:
        ValueError: `written` is not a number.
    """
    decimals = max(decimals, len(written.partition(".")[2]))
    return abs(float(written) - exact) <= 0.5 * 10.0**-decimals + FLOAT_ERROR


def same_number(answer: str, gold: str) -> bool:
    """Return whether two texts are the same number, written in digits."""
    try:
        return Decimal(answer) == Decimal(gold)
    except decimal.InvalidOperation:
        return False


@of_short_text
def as_number(answer: str, entry: Entry) -> str:
    """Write the last side of a calculation, without the noise of a float.

    All other sides must have its value, or repeat the end of the question.

    Example:
        >>> as_number("8 + 12 = 20", {"question": "What is 8 + 12?"})
        '20'
    """
    *sides, last = map(str.strip, answer.translate(_SIGNS).split("="))
    asked = "".join(entry.get("question", "").split()).rstrip(".?=")
    value = exact_value(last)
    for side in sides:
        is_asked = side and asked.endswith("".join(side.split()))
        if not is_asked and (value is None or exact_value(side) != value):
            return answer
    noisy = _NOISY.fullmatch(last)
    return str(round(Decimal(last), len(noisy[1]))) if noisy else last


@of_short_text
def as_fraction(answer: str, entry: Entry) -> str:
    """Write a fraction in the form of the reference, in LaTeX or with `/`."""
    gold = entry.get("answer") or ""
    both = [_FRACTION.fullmatch(text.strip("$ ")) for text in (answer, gold)]
    terms = [[t for t in match.groups() if t] for match in both if match]
    return gold if len(terms) == len(both) and terms[0] == terms[1] else answer
