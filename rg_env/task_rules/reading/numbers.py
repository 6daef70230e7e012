r"""Numbers and calculations as people and language models write them.

Some answers show the calculation, `8 + 12 = 20`, and some decimals have the noise of a
float in their last digits. These functions do no other arithmetic and no rounding.
`rg_env.task_rules.answer_matching` accepts all other forms of a number.

A text of digits, `+ - * / ( )` and spaces is parsed into a tree and computed in
fractions; no code runs. Powers, names and comments are not allowed.
"""

from __future__ import annotations

import ast
import decimal
import functools
import operator
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction

from rg_env.task_rules.rules import Entry, Notation

# -- calculations ----------------------------------------------------------------------

_CALCULATION = re.compile(r"[0-9+\-*/()\s]+")
_OPERATIONS: Mapping[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def _value(node: ast.expr) -> Fraction:
    """Compute a tree; raises ValueError for anything but the four operations."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return Fraction(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        value = _value(node.operand)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return _OPERATIONS[type(node.op)](_value(node.left), _value(node.right))
    raise ValueError("none of the four operations")


_DECIMAL = re.compile(r"(?<!\d)(\d+)\.(\d+)")


def exact_value(text: str) -> Fraction | None:
    """Return the value of a calculation, also with decimals; None if it has none.

    Example:
        >>> exact_value("(1 + 2) / 0.5")
        Fraction(6, 1)
    """

    def as_fraction(match: re.Match[str]) -> str:
        return f"({int(match[1] + match[2])}/1{'0' * len(match[2])})"

    text = _DECIMAL.sub(as_fraction, text)
    if not _CALCULATION.fullmatch(text):
        return None
    try:
        return _value(ast.parse(" ".join(text.split()), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return None


# -- short answers ---------------------------------------------------------------------

MAX_SHORT_CHARS = 400


def short_answers_only(notation: Notation) -> Notation:
    """Have a notation skip long answers, and get short ones with single spaces.

    Its patterns can then match spaces in several positions in linear time. Lines, and
    columns between tabs, stay separate, so that no number spans two lines.
    """

    @functools.wraps(notation)
    def written(answer: str, entry: Entry) -> str:
        if len(answer) > MAX_SHORT_CHARS:
            return answer
        lines = answer.replace("\t", "\n").splitlines()
        text = "\n".join(filter(None, (" ".join(line.split()) for line in lines)))
        result = notation(text, entry)
        return answer if result == text else result

    return written


# -- numbers ---------------------------------------------------------------------------

FLOAT_ERROR = 1e-6

# A float has 15 exact digits, and Python writes up to 17.
_NOISY = re.compile(r"(?=.{16,40}\Z)-?\d+\.(\d*?)(?:0{7,}[1-9]\d?|9{8,}\d?)")
_SIGNS = str.maketrans({"\u2212": "-", "\u00d7": "*", "\u00f7": "/"})
_FRACTION = re.compile(
    r"(?:\\[dt]?frac\s*\{\s*(-?\d+)\s*\}\s*\{\s*(\d+)\s*\}|(-?\d+)\s*/\s*(\d+))"
)


def is_rounded(written: str, exact: float, decimals: int) -> bool:
    """Return whether a number is `exact`, rounded to at least `decimals` decimals.

    Raises:
        ValueError: `written` is not a number.
    """
    decimals = max(decimals, len(written.partition(".")[2]))
    return abs(float(written) - exact) <= 0.5 * 10.0**-decimals + FLOAT_ERROR


def is_same_number(answer: str, gold: str) -> bool:
    """Return whether two texts are the same number, written in digits."""
    try:
        return Decimal(answer) == Decimal(gold)
    except decimal.InvalidOperation:
        return False


@short_answers_only
def as_number(answer: str, entry: Entry) -> str:
    """Write only the last side of a calculation, without the noise of a float.

    Each other side must have its value, or repeat the end of the question.

    Example:
        >>> as_number("8 + 12 = 20", {"question": "What is 8 + 12?"})
        '20'
    """
    *sides, last = map(str.strip, answer.translate(_SIGNS).split("="))
    question = "".join(entry.get("question", "").split()).rstrip(".?=")
    value = exact_value(last)
    for side in sides:
        is_asked = side and question.endswith("".join(side.split()))
        if not is_asked and (value is None or exact_value(side) != value):
            return answer
    noisy = _NOISY.fullmatch(last)
    return str(round(Decimal(last), len(noisy[1]))) if noisy else last


@short_answers_only
def as_fraction(answer: str, entry: Entry) -> str:
    """Write a fraction in the form of the reference, in LaTeX or with `/`."""
    gold = entry.get("answer") or ""
    terms = _terms(answer)
    return gold if terms and terms == _terms(gold) else answer


def _terms(fraction: str) -> list[str]:
    """Return the numerator and the denominator of a fraction, [] for another text."""
    match = _FRACTION.fullmatch(fraction.strip("$ "))
    return [term for term in match.groups() if term] if match else []
