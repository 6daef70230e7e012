"""Rules of jugs, whose answer is a list of moves, in JSON."""

from __future__ import annotations

import json
import re

from rg_env.task_rules.reading.values import as_json
from rg_env.task_rules.rules import (
    READABLE_SCORE,
    Entry,
    ItemCheck,
    LevelRepair,
    LibraryScore,
    ScorerFix,
    TaskRules,
)

_MOVE = re.compile(r"\S+ [A-Z](?:->[A-Z])?")  # the verb in any language


def _score_moves(answer: str, entry: Entry, library: LibraryScore) -> float:
    value = library(answer)
    if value <= READABLE_SCORE:
        return value
    moves = json.loads(answer)
    has_only_moves = isinstance(moves, list) and all(
        _MOVE.fullmatch(" ".join(move.split())) for move in moves
    )
    return value if has_only_moves else READABLE_SCORE


JUGS = TaskRules(
    "jugs",
    notation=as_json,
    fix=ScorerFix(
        fault="Ignores the text behind a move.",
        score=_score_moves,
    ),
    item_checks=(
        ItemCheck(
            "answer says that there is no solution, because the library searches with"
            " all jugs and solves with the first three",
            lambda entry: bool(entry["answer"] == '["No solution"]'),
            always=True,
        ),
    ),
    level_repair=LevelRepair(
        {level: {"num_jugs": 3} for level in (2, 3)},
        "levels 2 and 3 ask for 5 and 7 jugs; finding a puzzle takes seconds to"
        " minutes, and its solver sees only three jugs, so that the answers are wrong",
    ),
)
