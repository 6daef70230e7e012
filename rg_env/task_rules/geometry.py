"""advanced_geometry: points, angles and lengths."""

from __future__ import annotations

import re

from rg_env.task_rules.reading.notation import of_short_text
from rg_env.task_rules.reading.numbers import DEGREES, is_rounded, read_number
from rg_env.task_rules.rules import READABLE, Entry, LibraryScore, ScorerFix, TaskRules

_WRITTEN_POINT = re.compile(
    r"(?:(?:[A-Z]|[Oo]rthocenter|\(x,\s*y\))\s*(?:=|:|\u2248|\\approx)?\s*)?"
    r"[(\[]\s*(?:x\s*=\s*)?(?P<x>[^,()\[\]]{1,60}),"
    r"\s*(?:y\s*=\s*)?(?P<y>[^,()\[\]]{1,60})[)\]]"
)
_COORDINATES = re.compile(
    r"x\s*=\s*(?P<x>[^,;=]{1,60}?)\s*(?:,|;|and|, and)\s*y\s*=\s*(?P<y>[^,;=]{1,60})"
)
_LENGTH = re.compile(r"\s*units?$")
_ANGLE_NAME = re.compile(
    r"(?:\u2220|\\angle|angle)?\s*[A-Z]{1,3}\s*(?:=|\u2248|\\approx)\s*"
)


def _as_point(answer: str) -> str:
    match = _WRITTEN_POINT.fullmatch(answer) or _COORDINATES.fullmatch(answer)
    if match is None:
        return answer
    x, y = read_number(match["x"]), read_number(match["y"])
    if x is None or y is None or x.bottom is not None or y.bottom is not None:
        return answer
    return f"({x.text}, {y.text})"


def _as_figure(answer: str, entry: Entry) -> str:
    """Write a point, an angle or a length as the geometry scorer reads it."""
    kind = entry.get("metadata", {}).get("task_type")
    if kind == "orthocenter":
        return _as_point(answer)
    shorter = DEGREES if kind == "angle_measure" else _LENGTH
    bare = _ANGLE_NAME.sub("", answer) if kind == "angle_measure" else answer
    number = read_number(shorter.sub("", bare))
    if number is None or number.bottom is not None:
        return answer
    gold = entry.get("answer")
    right = read_number(gold.rstrip("\u00b0")) if isinstance(gold, str) else None
    if right is not None and right.value == number.value:
        return str(gold)
    return number.text


ASKED_DECIMALS = 3
_EXACT = {
    "angle_measure": "angle_ABC_degrees",
    "incircle_radius": "incircle_radius_approx",
    "orthocenter": "orthocenter_approx",
}
_NUMBER = r"[+-]?\d+(?:\.\d*)?"
_SHAPES = {
    "angle_measure": re.compile(rf"{_NUMBER}°?"),
    "incircle_radius": re.compile(_NUMBER),
    "orthocenter": re.compile(rf"\(?\s*{_NUMBER}\s*,\s*{_NUMBER}\s*\)?"),
}


def _one_value(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score a point of two numbers, an angle with its sign last, or a length.

    One that is correct to three decimals, which the question asks for, is right; the
    library compares an angle at two.
    """
    kind, text = entry["metadata"]["task_type"], answer.strip()
    is_shaped = _SHAPES[kind].fullmatch(text)
    exact = entry["metadata"][_EXACT[kind]]
    exact = exact if kind == "orthocenter" else [exact]
    pairs = zip(re.findall(_NUMBER, text), exact, strict=False)
    if is_shaped and all(is_rounded(*pair, ASKED_DECIMALS) for pair in pairs):
        return 1.0
    is_more = kind == "orthocenter" and not is_shaped
    is_more |= kind == "angle_measure" and "°" in text.rstrip("°")
    return min(READABLE, library(answer)) if is_more else library(answer)


ADVANCED_GEOMETRY = TaskRules(
    "advanced_geometry",
    notation=of_short_text(_as_figure),
    fix=ScorerFix(
        scorer_sha256="5745a638170fca3871f07f62b22a5500c7d62366f3ece2bd2fe42dccfc4e2683",
        fault=(
            "Ignores what follows the first two numbers of a point; an angle with the"
            " three decimals that are asked for scores 0.05."
        ),
        score=_one_value,
    ),
)
