"""manipulate_matrix: a matrix after some operations."""

from __future__ import annotations

from rg_env.task_rules.base_scorer import digit_behind
from rg_env.task_rules.reading.filler_words import is_wrapper
from rg_env.task_rules.reading.grids import WHOLE, grid_of
from rg_env.task_rules.rules import Entry, LibraryScore, ScorerFix, TaskRules


def _rows(text: str) -> str:
    return "\n".join(" ".join(row.split()) for row in text.strip().split("\n"))


def _matrix(answer: str, entry: Entry, library: LibraryScore) -> float:
    gold = entry["answer"].strip()
    if _rows(answer).strip() == gold or is_wrapper(_rows(answer), gold):
        return library(answer)
    return 0.0


RULES = TaskRules(
    "manipulate_matrix",
    notation=grid_of(WHOLE),
    fix=ScorerFix(
        scorer_sha256="ed87437632815dbd21077417e776a8708f693b8be603884519f330290bb0b1ad",
        fault="Gives credit for the right answer with something after it.",
        proof=digit_behind,
        proof_scores=0.5,
        score=_matrix,
    ),
)
