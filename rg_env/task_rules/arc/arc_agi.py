"""arc_agi: a board of colors, read as in rearc."""

from __future__ import annotations

import re

from rg_env.task_rules.reading.grids import DIGIT, grid_of
from rg_env.task_rules.rules import Entry, LibraryScore, ScorerFix, TaskRules

_SHAPE_LINE = re.compile(r"Shape: *\d{1,2}x\d{1,2}")


def _score_board(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score an arc board; a line `Shape: ` may hold a shape and nothing else."""
    shapes = [line.strip() for line in answer.split("\n")]
    if any(s.startswith("Shape: ") and not _SHAPE_LINE.fullmatch(s) for s in shapes):
        return 0.0
    return library(answer)


def board_fix(scorer_sha256: str) -> ScorerFix:
    """Return the fix of both tasks of arc."""
    return ScorerFix(
        scorer_sha256,
        fault="Ignores any line that begins with `Shape: `, even a second board.",
        proof=lambda entry: f"{entry['answer']}\nShape: no, it is 1 2 3",
        score=_score_board,
    )


RULES = TaskRules(
    "arc_agi",
    setup_reads=("use_train", "use_eval", "board_format_opts"),  # 19 MB in 0.4 s
    notation=grid_of(DIGIT, compact=True),
    fix=board_fix("e3244f5e2d4f1e5e0a852cd8ab3f78ba780b14d0029a63d9f5ca8d2f72775ecd"),
)
