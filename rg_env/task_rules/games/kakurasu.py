"""kakurasu: grids of 0 and 1."""

from __future__ import annotations

from rg_env.task_rules.reading.filler_words import is_filler_beside
from rg_env.task_rules.reading.grids import BIT, grid_of
from rg_env.task_rules.rules import Entry, LibraryScore, ScorerFix, TaskRules


def _bits_alone(answer: str, entry: Entry, library: LibraryScore) -> float:
    return library(answer) if is_filler_beside(BIT, answer) else 0.0


RULES = TaskRules(
    "kakurasu",
    notation=grid_of(BIT, compact=True),
    fix=ScorerFix(
        scorer_sha256="d408ee73a6daf81131ab7c2af62a26816e39f43e0e5cc8027d349d2ea03cfb1f",
        fault="Ignores everything but the digits 0 and 1, even a second answer.",
        score=_bits_alone,
    ),
)
