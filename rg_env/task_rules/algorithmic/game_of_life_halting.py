"""game_of_life_halting: whether a board comes to rest."""

from __future__ import annotations

from rg_env.task_rules.reading.filler_words import is_wrapper
from rg_env.task_rules.reading.words import as_verdict
from rg_env.task_rules.rules import (
    Entry,
    ItemCheck,
    LevelRepair,
    LibraryScore,
    ScorerFix,
    TaskRules,
)


def _halts(answer: str, entry: Entry, library: LibraryScore) -> float:
    text, gold = answer.lower(), entry["answer"].lower()
    return float(text.count(gold) == 1 and is_wrapper(text, gold))  # no `false: False`


RULES = TaskRules(
    "game_of_life_halting",
    notation=as_verdict,
    fix=ScorerFix(
        scorer_sha256="d194de0097bee9d5ebedd3a868b08fddeca9857377c55e50d6e35de001ecf8a6",
        fault="Any text scores 1.0, because bool() of any text is true.",
        score=_halts,
    ),
    item_checks=(
        ItemCheck(
            "question shows three dots in the place of most cells",
            lambda entry: "..." in entry["question"],
        ),
    ),
    level_repair=LevelRepair(
        {level: {"grid_size_x": 30, "grid_size_y": 30} for level in (2, 3)},
        "levels 2 and 3 ask for boards of more than 1,000 cells, and the question shows"
        " 36 cells of those",
    ),
)
