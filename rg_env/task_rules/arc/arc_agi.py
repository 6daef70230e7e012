"""arc_agi: a board of colors, read as in rearc."""

from __future__ import annotations

import re

from rg_env.task_rules.reading.grids import DIGIT, grid_of
from rg_env.task_rules.rules import Entry, LibraryScore, ScorerFix, TaskRules

_SHAPE_LINE = re.compile(r"Shape: *\d{1,2}x\d{1,2}")


def score_board(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score an arc board; a line `Shape: ` may hold a shape and nothing else."""
    shapes = [line.strip() for line in answer.split("\n")]
    if any(s.startswith("Shape: ") and not _SHAPE_LINE.fullmatch(s) for s in shapes):
        return 0.0
    return library(answer)


def board_and_another(entry: Entry) -> str:
    """Return the right board and beside its shape another one."""
    return f"{entry['answer']}\nShape: no, it is 1 2 3"


RULES = TaskRules(
    "arc_agi",
    notation=grid_of(DIGIT, compact=True),
    fix=ScorerFix(
        scorer_sha256="e3244f5e2d4f1e5e0a852cd8ab3f78ba780b14d0029a63d9f5ca8d2f72775ecd",
        fault="Passes over any line that begins with `Shape: `, also another board.",
        proof=board_and_another,
        proof_scores=1.0,
        score=score_board,
    ),
)
