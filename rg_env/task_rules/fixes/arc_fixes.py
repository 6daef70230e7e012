"""Fixes of the category arc. arc_1d is fixed with the base scorer."""

from __future__ import annotations

import re

from rg_env.task_rules.scorer_fix import Entry, LibraryScore, ScorerFix

_SHAPE_LINE = re.compile(r"Shape: *\d{1,2}x\d{1,2}")


def _board_without_asides(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score an arc board; a line `Shape: ` may hold a shape and nothing else."""
    shapes = [line.strip() for line in answer.split("\n")]
    if any(s.startswith("Shape: ") and not _SHAPE_LINE.fullmatch(s) for s in shapes):
        return 0.0
    return library(answer)


def _board_and_another(entry: Entry) -> str:
    return f"{entry['answer']}\nShape: no, it is 1 2 3"


FIXES: tuple[ScorerFix, ...] = (
    ScorerFix(
        task="arc_agi",
        scorer_sha256="e3244f5e2d4f1e5e0a852cd8ab3f78ba780b14d0029a63d9f5ca8d2f72775ecd",
        fault="Passes over any line that begins with `Shape: `, also another board.",
        proof=_board_and_another,
        proof_pays=1.0,
        score=_board_without_asides,
    ),
    ScorerFix(
        task="rearc",
        scorer_sha256="02467a410400d76e8720efca4f3378d9a7c3bccd6e4113a5136cce63f12bd740",
        fault="Passes over any line that begins with `Shape: `, also another board.",
        proof=_board_and_another,
        proof_pays=1.0,
        score=_board_without_asides,
    ),
)
