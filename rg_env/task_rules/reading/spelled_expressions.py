r"""Expressions, in the ways that their question leaves open.

Signs and brackets are written as the scorers read them (`\times` is `*`), the name of
a constant or of a point is taken off, and a list of solutions is joined by commas.
Nothing is worked out: a sum stays the sum it is, and a product the product.

Where the question forbids a form, as the integrations forbid `^`, it is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rg_env.task_rules.reading.notation import of_short_text
from rg_env.task_rules.reading.numbers import read_number
from rg_env.task_rules.reading.sums import as_sum
from rg_env.task_rules.rules import Notation as Spelling

_POINT = re.compile(
    r"(?:(?:[A-Z]|[Oo]rthocenter|\(x,\s*y\))\s*(?:=|:|\u2248|\\approx)?\s*)?"
    r"[(\[]\s*(?:x\s*=\s*)?(?P<x>[^,()\[\]]{1,60}),"
    r"\s*(?:y\s*=\s*)?(?P<y>[^,()\[\]]{1,60})[)\]]"
)
_COORDINATES = re.compile(
    r"x\s*=\s*(?P<x>[^,;=]{1,60}?)\s*(?:,|;|and|, and)\s*y\s*=\s*(?P<y>[^,;=]{1,60})"
)
_LENGTH = re.compile(r"\s*units?$")
_DEGREES = re.compile(r"\s*(?:\u00b0|degrees?|deg)$")
_ANGLE_NAME = re.compile(
    r"(?:\u2220|\\angle|angle)?\s*[A-Z]{1,3}\s*(?:=|\u2248|\\approx)\s*"
)


def _as_point(answer: str) -> str:
    match = _POINT.fullmatch(answer) or _COORDINATES.fullmatch(answer)
    if match is None:
        return answer
    x, y = read_number(match["x"]), read_number(match["y"])
    if x is None or y is None or x.bottom is not None or y.bottom is not None:
        return answer
    return f"({x.text}, {y.text})"


def as_figure(answer: str, entry: Mapping[str, Any]) -> str:
    """Write a point, an angle or a length as the geometry scorer reads it."""
    kind = entry.get("metadata", {}).get("task_type")
    if kind == "orthocenter":
        return _as_point(answer)
    shorter = _DEGREES if kind == "angle_measure" else _LENGTH
    bare = _ANGLE_NAME.sub("", answer) if kind == "angle_measure" else answer
    number = read_number(shorter.sub("", bare))
    if number is None or number.bottom is not None:
        return answer
    gold = entry.get("answer")
    right = read_number(gold.rstrip("\u00b0")) if isinstance(gold, str) else None
    if right is not None and right.value == number.value:
        return str(gold)
    return number.text


SPELLINGS: Mapping[str, Spelling] = {
    "advanced_geometry": of_short_text(as_figure),
    "countdown": as_sum,
    "puzzle24": as_sum,
}
"""Task to its spelling."""
