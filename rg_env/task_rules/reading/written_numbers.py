r"""One number as people and language models write it: `5.0`, `1,234`, `1.12e-15`.

A text is a number here if nothing else stands in it but what is only notation: a plus,
leading zeros, separators of thousands, a power of ten, an `≈` before it. `5/1` is the
whole number 5; any other fraction is read as such, and is no whole number. There is no
arithmetic beyond that, and no rounding.

The digits and the exponent are bounded, so that a few characters become no huge number.
"""

from __future__ import annotations

import dataclasses
import re
from fractions import Fraction

MAX_DIGITS = 1_000
MAX_EXPONENT = 400

_DIGITS = r"(?:\d{1,3}(?:,\d{3})+|\d{1,3}(?: \d{3})+|\d{1,3}(?:_\d{3})+|\d+)"
_POWER = (
    r"[eE](?P<e>[+-]?\d{1,4})"
    r"|\s*(?:[x*\u00d7\u00b7\u22c5]|\\times|\\cdot)\s*10\s*(?:\^|\*\*)\s*"
    r"(?P<open>[{(])?\s*(?P<power>[+-]?\s?\d{1,4})\s*(?(open)[)}])"
)
_DECIMAL = re.compile(
    rf"(?P<sign>[+-]?)\s?(?P<whole>{_DIGITS})?(?:\.(?P<rest>\d*))?(?:{_POWER})?"
)
_FRACTION = re.compile(
    r"(?P<sign>[+-]?)\s?(?:"
    rf"(?P<top>{_DIGITS})\s*/\s*(?P<bottom>{_DIGITS})"
    r"|\\[dt]?frac\s*\{\s*(?P<t>\d+)\s*\}\s*\{\s*(?P<b>\d+)\s*\})"
)
_NO_DIGIT = re.compile(r"\D")
_MARKS = re.compile(r"(?:\\approx|[\u2248\u2243\u2245=])\s*")
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")
_RAISED = re.compile(r"(?<=10)[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_SIGNS = str.maketrans(
    {"\u2212": "-", "\uff0b": "+", "\u2044": "/", "\u2215": "/", "\uff0e": "."}
)


@dataclasses.dataclass(frozen=True)
class WrittenNumber:
    """A number that was read.

    Attributes:
        text: The same as Python reads it: `-1.12e-15`, `593/1368`.
        value: Exactly what the text says.
        top: Of a fraction as it is written, None where it is none.
        bottom: Of a fraction as it is written, None where it is none.
    """

    text: str
    value: Fraction
    top: int | None = None
    bottom: int | None = None


def _plainly(text: str) -> str:
    text = text.strip().translate(_SIGNS).replace("{,}", ",").replace(r"\,", " ")
    text = text.replace(r"\%", "%")
    return _RAISED.sub(lambda found: "^" + found[0].translate(_SUPERSCRIPTS), text)


def _read_fraction(text: str) -> WrittenNumber | None:
    match = _FRACTION.fullmatch(text)
    if match is None:
        return None
    top = _NO_DIGIT.sub("", match["top"] or match["t"])
    bottom = _NO_DIGIT.sub("", match["bottom"] or match["b"])
    if int(bottom) == 0:
        return None
    sign = -1 if match["sign"] == "-" else 1
    above, below = sign * int(top), int(bottom)
    return WrittenNumber(f"{above}/{below}", Fraction(above, below), above, below)


def _read_decimal(text: str) -> WrittenNumber | None:
    match = _DECIMAL.fullmatch(text)
    if match is None or not (match["whole"] or match["rest"]):
        return None
    whole, rest = _NO_DIGIT.sub("", match["whole"] or "0"), match["rest"] or ""
    sign = "-" if match["sign"] == "-" else ""
    exponent = int((match["e"] or match["power"] or "0").replace(" ", ""))
    if abs(exponent) > MAX_EXPONENT:
        return None
    value = int(f"{sign}{whole}{rest}") * Fraction(10) ** (exponent - len(rest))
    plain = f"{sign}{whole}" + (f".{rest}" if rest else "")
    return WrittenNumber(plain + (f"e{exponent}" if exponent else ""), value)


def read_number(text: str) -> WrittenNumber | None:
    """Read a text that is one number; None where it is anything else or too long."""
    if len(text) > MAX_DIGITS:
        return None
    plain = _plainly(text)
    mark = _MARKS.match(plain)
    plain = plain[mark.end() :] if mark else plain
    return _read_decimal(plain) or _read_fraction(plain)


def is_whole_as_written(number: WrittenNumber) -> bool:
    """Say whether nothing has to be divided to know the number.

    `5/1` is 5, and `0/1` may as well be a choice between the two.
    """
    return number.bottom is None or (number.bottom == 1 and number.top != 0)
