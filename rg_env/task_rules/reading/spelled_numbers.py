"""Numbers, in the ways that their question leaves open.

A number that is the right one, exactly, is spelled as the right answer is. Around it
may stand what says a number and what is counted: `256 legs`.

Where a scorer rounds by itself, as the question asks, the number is only written
plainly, and what it is worth is the scorer's matter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from math import gcd
from typing import Any

from rg_env.task_rules.reading.notation import Spelling, of_short_text
from rg_env.task_rules.reading.talk_around_answers import is_talk, words_of_numbers
from rg_env.task_rules.reading.written_numbers import (
    WrittenNumber,
    is_whole_as_written,
    read_number,
)

_CHOICE = re.compile(r"\s/|/\s")
"""`2 / 1` is not read as the number 2."""

_NUMBER_IN_TEXT = re.compile(
    r"(?<![\w.,/^%-])[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:/1)?(?![\w/^%]|[.,]\d)"
)
_DEGREES = re.compile(r"\s*(?:\u00b0|degrees?|deg)$")
_FUNCTION = re.compile(r"(?:gcd|lcm)\(([^()]*)\)")
_CHANCE = re.compile(r"P\s*\([^()]{0,80}\)\s*[=:\u2248]?\s*")
_DOLLARS = re.compile(r"^\\?\$\s?(?=[\d.])|(?<=\d)\s*(?:dollars?|USD)$")


def _without_question(answer: str, question: str) -> str:
    """Return what stands behind `=` where the question's own words stand before it."""
    before, sign, behind = answer.partition("=")
    asked = "".join(before.split()).lower()
    named = _FUNCTION.fullmatch(asked)
    asked = named[1] if named else asked
    # `x + 1 = 5` says of the unknown that it is 4.
    has_unknown = named is None and any(sign.isalpha() for sign in asked)
    given = "".join(question.split()).lower()
    is_asked = len(asked) > 2 and asked in given and not has_unknown
    return behind.strip() if sign and is_asked and "=" not in behind else answer


def number_in(answer: str, question: str) -> WrittenNumber | None:
    """Read the one number of an answer, alone or in the words of its question."""
    number = read_number(_without_question(answer, question))
    if number is not None:
        return number
    found = list(_NUMBER_IN_TEXT.finditer(answer))
    if len(found) != 1:
        return None
    beside = f"{answer[: found[0].start()]} {answer[found[0].end() :]}"
    is_said = is_talk(beside, words_of_numbers(question))
    return read_number(found[0][0]) if is_said else None


def _value_of(gold: object) -> Fraction | None:
    number = read_number(gold) if isinstance(gold, str) else None
    return None if number is None else number.value


def as_number(answer: str, entry: Mapping[str, Any]) -> str:
    """Spell a number that is exactly the right one as the right answer."""
    gold = entry.get("answer")
    value = _value_of(gold)
    if value is None:
        return answer
    number = number_in(answer, entry.get("question", ""))
    if number is None or number.value != value or _CHOICE.search(answer):
        return answer
    if not is_whole_as_written(number):
        return answer
    return str(gold)


def as_angle(answer: str, entry: Mapping[str, Any]) -> str:
    """Spell the right angle, with its unit or without, as the right answer."""
    bare = _DEGREES.sub("", answer)
    return as_number(bare if read_number(bare) else answer, entry)


def as_money(answer: str, entry: Mapping[str, Any]) -> str:
    """Spell the right number, also of dollars, as the right answer."""
    bare = _DOLLARS.sub("", answer)
    return as_number(bare if read_number(bare) else answer, entry)


def written_plainly(answer: str, entry: Mapping[str, Any]) -> str:
    """Write a number, whichever it is, with digits, a point and `e`."""
    number = read_number(_without_question(answer, entry.get("question", "")))
    if number is None or number.bottom is not None:
        return answer
    return number.text


def without_chance(answer: str) -> str:
    """Take `P(exactly 2 heads) =` off."""
    match = _CHANCE.match(answer)
    return answer[match.end() :] if match else answer


def as_fraction(answer: str, entry: Mapping[str, Any]) -> str:
    """Spell a fraction in lowest terms that is the right one as the right answer."""
    gold = entry.get("answer")
    right = read_number(gold.strip("$ ")) if isinstance(gold, str) else None
    number = read_number(without_chance(answer.strip("$ ")))
    if right is None or number is None or number.value != right.value:
        return answer
    if number.bottom is None:
        is_whole = number.text.lstrip("-").isdigit()
        return str(gold) if is_whole else answer
    in_lowest_terms = gcd(number.top or 0, number.bottom) == 1
    return str(gold) if in_lowest_terms else answer


# -- digits of a base ------------------------------------------------------------------

_TARGET = re.compile(r" to (?:base-(?P<base>\d+)|(?P<name>binary|hexadecimal))\s*$")
_PREFIXES = {2: "0b", 8: "0o", 16: "0x"}
_NAMES = {"binary": 2, "hexadecimal": 16}
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_GROUPED = re.compile(
    r"[0-9a-z]{1,3}([ _,])[0-9a-z]{3}(?:\1[0-9a-z]{3})*"
    r"|[0-9a-z]{1,4}([ _])[0-9a-z]{4}(?:\2[0-9a-z]{4})*"
)
_LOWERED = re.compile("[₀-₉]+")
_BASE_BEHIND = re.compile(
    r"\s*(?:_\s*\{?\s*(?:\\text\{\s*)?(?P<sub>\d+)\s*\}{0,2}"
    r"|\(?\s*(?:in )?base[- ]?(?P<base>\d+)\s*\)?)$"
)


def in_base(answer: str, entry: Mapping[str, Any]) -> str:
    """Take off what only says again in which base a number is written."""
    target = _TARGET.search(entry.get("question", "").rstrip())
    gold = entry.get("answer")
    if target is None or not isinstance(gold, str):
        return answer
    base = _NAMES.get(target["name"] or "") or int(target["base"] or 0)
    digits = _LOWERED.sub(lambda at: "_" + at[0].translate(_SUBSCRIPTS), answer)
    behind = _BASE_BEHIND.search(digits)
    if behind and int(behind["sub"] or behind["base"]) == base:
        digits = digits[: behind.start()].strip()
        digits = digits.removeprefix("(").removesuffix(")")
    prefix = _PREFIXES.get(base)
    if prefix and digits.startswith(prefix):
        digits = digits[len(prefix) :]
    if _GROUPED.fullmatch(digits):
        digits = re.sub("[ _,]", "", digits)
    digits = digits.removeprefix("+")
    return gold if digits.lstrip("0") == gold.lstrip("0") and digits else answer


_HEX = re.compile(
    r"(?P<sign>[+-]?)\s?\(?(?P<digits>0[xX][0-9a-fA-F]+|[0-9]*[a-fA-F][0-9a-fA-F]*)\)?"
    r"(?:_\{?16\}?)?"
)


def in_hexadecimal(answer: str, entry: Mapping[str, Any]) -> str:
    """Write `0x` before hexadecimal digits that are no decimal ones."""
    text = _LOWERED.sub(lambda at: "_" + at[0].translate(_SUBSCRIPTS), answer)
    match = _HEX.fullmatch(text)
    if match is None:
        return answer
    digits = match["digits"].lower()
    return match["sign"] + (digits if digits.startswith("0x") else f"0x{digits}")


# -- spans of time ---------------------------------------------------------------------

_SPAN = re.compile(
    r"\+?(?P<days>-?\d{1,9})\s*days?\s*(?:,|and|,\s*and)?\s*(?P<clock>[\d:.]{4,20})?"
    r"\s*,?",
    re.IGNORECASE,
)
_CLOCK = re.compile(
    r"\+?(?P<clock>\d{1,9}(?::\d{1,2}){1,2}(?:\.\d{1,9})?)\s*(?:hours|hrs|h)?"
)


def as_span(answer: str, entry: Mapping[str, Any]) -> str:
    """Write a span of time as `D days` and a clock, whichever of the two it has."""
    kind = str(entry.get("metadata", {}).get("task_type", ""))
    if kind.startswith("time"):
        clock = _CLOCK.fullmatch(answer)
        return clock["clock"] if clock else answer
    span = _SPAN.fullmatch(answer)
    if span is None:
        return answer
    days = f"{int(span['days'])} days"
    if kind == "date":
        return days if span["clock"] is None else answer
    return answer if span["clock"] is None else f"{days}, {span['clock']}"


_COUNTED = (
    "basic_arithmetic binary_alternation chain_sum circuit_logic count_bits"
    " count_primes gcd lcm leg_counting letter_counting"
    " products rotten_oranges"
    " simple_equations"
)

_SPELLINGS: Mapping[str, Spelling] = {
    **dict.fromkeys(_COUNTED.split(), as_number),
    "base_conversion": in_base,
    "bitwise_arithmetic": in_hexadecimal,
    "decimal_arithmetic": written_plainly,
    "decimal_chain_sum": written_plainly,
    "dice": as_fraction,
    "fraction_simplification": as_fraction,
    "gsm_symbolic": as_money,
    "number_format": written_plainly,
    "power_function": written_plainly,
    "simple_geometry": as_angle,
    "time_intervals": as_span,
}

SPELLINGS: Mapping[str, Spelling] = {
    task: of_short_text(spelling) for task, spelling in _SPELLINGS.items()
}
"""Task to its spelling."""
