r"""One number as people and language models write it: `5.0`, `1,234`, `1.12e-15`.

A text is a number here if nothing else stands in it but what is only notation: a plus,
leading zeros, separators of thousands, a power of ten as `e`. `5/1` is the
whole number 5; any other fraction is read as such, and is no whole number. There is no
arithmetic beyond that, and no rounding but of the noise that a computer's decimals have
in their last digits: `40.99999999999999` is 41. Of `8 + 12 = 20` the last side is read,
if all sides are exactly equal.

The digits and the exponent are bounded, so that a few characters become no huge number.
"""

from __future__ import annotations

import dataclasses
import decimal
import re
from fractions import Fraction
from math import gcd

from rg_env.task_rules.reading.filler_words import is_filler, words_of_numbers
from rg_env.task_rules.reading.four_operations import exact_value
from rg_env.task_rules.reading.words import of_short_text
from rg_env.task_rules.rules import Entry, Notation

MAX_DIGITS = 1_000
MAX_EXPONENT = 400

_GROUPED = "|".join(rf"[1-9]\d{{0,2}}(?:{mark}\d{{3}})+" for mark in ", _")
_DIGITS = rf"(?:{_GROUPED}|\d+)"
_DECIMAL = re.compile(
    rf"(?P<sign>[+-]?)\s?(?P<whole>{_DIGITS})?(?:\.(?P<rest>\d*))?(?:[eE](?P<e>[+-]?\d{{1,4}}))?"
)
_FRACTION = re.compile(
    r"(?P<sign>[+-]?)\s?(?:"
    rf"(?P<top>{_DIGITS})\s*/\s*(?P<bottom>{_DIGITS})"
    r"|\\[dt]?frac\s*\{\s*(?P<t>\d+)\s*\}\s*\{\s*(?P<b>\d+)\s*\})"
)
# A float has no more digits that are sure, and Python writes up to 17.
NOISY_DIGITS = 15

_NOISE = re.compile(r"(?<=[.\d])(?:0{7,}[1-9]\d?|9{8,}\d?)$")
_NO_DIGIT = re.compile(r"\D")
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
    return text.replace(r"\%", "%")


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


def _without_noise(digits: str) -> str:
    """Return the decimal that a computer meant by `0.30000000000000004`."""
    noise = _NOISE.search(digits) if len(digits) > NOISY_DIGITS else None
    if noise is None:
        return digits
    places = max(0, noise.start() - digits.index(".") - 1)
    rounded = decimal.Decimal(digits).quantize(decimal.Decimal(1).scaleb(-places))
    return str(rounded)


def _read_decimal(text: str) -> WrittenNumber | None:
    match = _DECIMAL.fullmatch(text)
    if match is None or not (match["whole"] or match["rest"]):
        return None
    whole, rest = _NO_DIGIT.sub("", match["whole"] or "0"), match["rest"] or ""
    whole, _, rest = _without_noise(f"{whole}.{rest}").partition(".")
    sign = "-" if match["sign"] == "-" else ""
    exponent = int(match["e"] or "0")
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
    return _read_decimal(plain) or _read_fraction(plain)


FLOAT_ERROR = 1e-6


def is_rounded(written: str, exact: float, decimals: int) -> bool:
    """Say whether a number is another one, rounded to so many decimals or to more.

    What `float` does not read is a ValueError.
    """
    decimals = max(decimals, len(written.partition(".")[2]))
    return abs(float(written) - exact) <= 0.5 * 10.0**-decimals + FLOAT_ERROR


# -- numbers in an answer --------------------------------------------------------------

_CHOICE = re.compile(r"\s/|/\s")
"""`2 / 1` is not read as the number 2."""
_NUMBER_IN_TEXT = re.compile(
    r"(?<![\w.,/^%-])[+-]?(?:[1-9]\d{0,2}(?:,\d{3})+|\d+)(?:\.\d+)?(?:/1)?(?![\w/^%]|[.,]\d)"
)
DEGREES = re.compile(r"\s*(?:\u00b0|degrees?|deg)$")
_OF_SUMS = str.maketrans({"\u2212": "-", "\u00d7": "*", "\u00f7": "/"})
MAX_SIDES = 8


def _without_question(answer: str, question: str) -> str:
    """Return what stands behind `=` where the question's own words stand before it."""
    before, sign, behind = answer.partition("=")
    asked = "".join(before.split()).lower()
    # `x + 1 = 5` says of the unknown that it is 4.
    has_unknown = any(sign.isalpha() for sign in asked)
    given = "".join(question.split()).lower()
    is_asked = len(asked) > 2 and asked in given and not has_unknown
    return behind.strip() if sign and is_asked and "=" not in behind else answer


def _last_of_equals(answer: str) -> str:
    """Return the last side of `2*4 + 3*4 = 8 + 12 = 20`, all of them equal."""
    *sides, last = answer.translate(_OF_SUMS).split("=")
    number = _read_decimal(last.strip()) if 1 <= len(sides) <= MAX_SIDES else None
    if number is None or any(exact_value(side) != number.value for side in sides):
        return answer
    return last.strip()


def number_in(answer: str, question: str) -> WrittenNumber | None:
    """Read the one number of an answer, alone or in the words of its question."""
    number = read_number(_last_of_equals(_without_question(answer, question)))
    if number is not None:
        return number
    numbers = list(_NUMBER_IN_TEXT.finditer(answer))
    if len(numbers) != 1:
        return None
    beside = f"{answer[: numbers[0].start()]} {answer[numbers[0].end() :]}"
    is_alone = is_filler(beside, words_of_numbers(question))
    return read_number(numbers[0][0]) if is_alone else None


@of_short_text
def as_number(answer: str, entry: Entry) -> str:
    """Write a number that is exactly the right one as the right answer is written."""
    gold = entry.get("answer")
    right = read_number(gold) if isinstance(gold, str) else None
    number = number_in(answer, entry.get("question", ""))
    if right is None or number is None or number.value != right.value:
        return answer
    # `5/1` is 5, and `0/1` may as well be a choice between the two.
    is_whole = number.bottom is None or (number.bottom == 1 and number.top != 0)
    if not is_whole or _CHOICE.search(answer.rpartition("=")[2]):
        return answer
    return str(gold)


def with_unit(unit: re.Pattern[str]) -> Notation:
    """Return the notation of the right number, with its unit or without."""

    @of_short_text
    def notation(answer: str, entry: Entry) -> str:
        bare = unit.sub("", answer)
        return as_number(bare if read_number(bare) else answer, entry)

    return notation


@of_short_text
def written_plainly(answer: str, entry: Entry) -> str:
    """Write a number, whichever it is, with digits, a point and `e`."""
    number = read_number(_without_question(answer, entry.get("question", "")))
    if number is None or number.bottom is not None:
        return answer
    return number.text


@of_short_text
def as_fraction(answer: str, entry: Entry) -> str:
    """Write a fraction in lowest terms that is the right one as the right answer."""
    gold = entry.get("answer")
    right = read_number(gold.strip("$ ")) if isinstance(gold, str) else None
    number = read_number(answer.strip("$ "))
    if right is None or number is None or number.value != right.value:
        return answer
    in_lowest_terms = number.text.lstrip("-").isdigit()
    if number.bottom is not None:
        in_lowest_terms = gcd(number.top or 0, number.bottom) == 1
    return str(gold) if in_lowest_terms else answer


def same_number(answer: str, gold: str) -> bool:
    """Say whether two texts are one number, written in digits."""
    try:
        return decimal.Decimal(answer) == decimal.Decimal(gold)
    except decimal.InvalidOperation:
        return False
