"""advanced_geometry: points, angles and lengths."""

from __future__ import annotations

import re

from rg_env.task_rules.reading.numbers import is_rounded
from rg_env.task_rules.rules import Entry, LibraryScore, ScorerFix, TaskRules

REQUIRED_DECIMALS = 3
_EXACT_KEYS = {
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


def _score_value(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score a point, an angle with an optional degree sign, or a length.

    A value that is correct to three decimals, as the question asks, is right. The
    library compares two decimals of an angle.
    """
    kind = entry["metadata"]["task_type"]
    text = answer.strip()
    if not _SHAPES[kind].fullmatch(text):
        return 0.0
    exact = entry["metadata"][_EXACT_KEYS[kind]]
    values = exact if kind == "orthocenter" else [exact]
    pairs = zip(re.findall(_NUMBER, text), values, strict=True)
    is_right = all(is_rounded(written, x, REQUIRED_DECIMALS) for written, x in pairs)
    return 1.0 if is_right else library(answer)


ADVANCED_GEOMETRY = TaskRules(
    "advanced_geometry",
    fix=ScorerFix(
        fault=(
            "Ignores the text behind two numbers of a point; an angle with the"
            " three decimals that are asked for scores 0.05."
        ),
        score=_score_value,
    ),
)
