"""Rules of the algorithmic tasks about numbers, and of jugs."""

from __future__ import annotations

import json
import re
from collections import Counter

from rg_env.task_rules.one_rule import one_answer
from rg_env.task_rules.reading.values import as_json
from rg_env.task_rules.rules import (
    READABLE,
    Entry,
    ItemCheck,
    LevelRepair,
    LibraryScore,
    ScorerFix,
    TaskRules,
)

# -- cryptarithm -----------------------------------------------------------------------


CRYPTARITHM = TaskRules(
    "cryptarithm",
    fix=one_answer(any_number=True),
)


# -- jugs ------------------------------------------------------------------------------

_JUG_MOVE = re.compile(r"\S+ [A-Z](?:->[A-Z])?")  # the verb in any language


def _moves_of_jugs(answer: str, entry: Entry, library: LibraryScore) -> float:
    value = library(answer)
    if value <= READABLE:
        return value
    moves = json.loads(answer)
    plain = isinstance(moves, list) and all(
        _JUG_MOVE.fullmatch(" ".join(move.split())) for move in moves
    )
    return value if plain else READABLE


JUGS = TaskRules(
    "jugs",
    notation=as_json,
    fix=ScorerFix(
        fault="Ignores the text behind a move.",
        score=_moves_of_jugs,
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
        " minutes, and its solver sees three jugs alone, so that the answers are wrong",
    ),
)


# -- number_filtering ------------------------------------------------------------------


def _keeps_another_notation(entry: Entry) -> bool:
    """Return whether the answer writes a number in another way than the list does."""
    metadata = entry["metadata"]
    return bool(Counter(metadata["result"]) - Counter(metadata["original_numbers"]))


NUMBER_FILTERING = TaskRules(
    "number_filtering",
    item_checks=(
        ItemCheck(
            "answer writes a number in another way than the list does",
            _keeps_another_notation,
        ),
    ),
)


# -- number_sorting --------------------------------------------------------------------


NUMBER_SORTING = TaskRules(
    "number_sorting",
    fix=one_answer(),
)
