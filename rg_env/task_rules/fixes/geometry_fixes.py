"""Fixes of the category geometry."""

from __future__ import annotations

import re

from rg_env.task_rules.scorer_fix import Entry, LibraryScore, ScorerFix

_NUMBER = r"[+-]?\d+(?:\.\d*)?"
_POINT = re.compile(rf"\(?\s*{_NUMBER}\s*,\s*{_NUMBER}\s*\)?")


def _one_value(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score advanced_geometry: a point is two numbers, an angle has its sign last."""
    kind, text = entry["metadata"]["task_type"], answer.strip()
    if kind == "orthocenter" and not _POINT.fullmatch(text):
        return min(0.01, library(answer))
    if kind == "angle_measure" and "°" in text.rstrip("°"):
        return min(0.01, library(answer))
    return library(answer)


def _value_and_another(entry: Entry) -> str:
    """Add a third number to a point; put the sign for degrees inside the angle."""
    gold = entry["answer"]
    if entry["metadata"]["task_type"] == "orthocenter":
        return f"{gold}, or 3, 4"
    return f"{gold[:-4]}°{gold[-4:]}"


FIXES: tuple[ScorerFix, ...] = (
    ScorerFix(
        task="advanced_geometry",
        scorer_sha256="5745a638170fca3871f07f62b22a5500c7d62366f3ece2bd2fe42dccfc4e2683",
        fault="Reads the first two numbers of a point and passes over what follows.",
        proof=_value_and_another,
        proof_pays=1.0,
        score=_one_value,
    ),
)
