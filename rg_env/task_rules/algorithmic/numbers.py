"""Rules of the algorithmic tasks about numbers, and of jugs."""

from __future__ import annotations

import json
import re
from collections import Counter

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


def _each_letter_once(answer: str, entry: Entry, library: LibraryScore) -> float:
    letters = [pair.partition("=")[0].strip() for pair in answer.split(",")]
    value = library(answer)
    return value if len(set(letters)) == len(letters) else min(READABLE, value)


CRYPTARITHM = TaskRules(
    "cryptarithm",
    fix=ScorerFix(
        scorer_sha256="09fb8a2afc45aa19347a0966db4e4b0887b4f40a919f8be4f74f3e11dbeaf763",
        fault="Takes the last digit if a letter gets two.",
        score=_each_letter_once,
    ),
)


# -- jugs ------------------------------------------------------------------------------

_JUG_MOVE = re.compile(r"(?:fill|empty) [A-Z]|pour [A-Z]->[A-Z]")


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
        scorer_sha256="c012156723d643fa58eb8a1a41cd4b2698aefba5ba955f8912cef11f2c7f86e8",
        fault="Ignores whatever follows a move.",
        score=_moves_of_jugs,
    ),
    item_checks=(
        ItemCheck(
            "answer is that there is none, because the library searches with all jugs"
            " and solves with the first three",
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
    """Say whether more of a number is kept than stands in the list, so written."""
    metadata = entry["metadata"]
    return bool(Counter(metadata["result"]) - Counter(metadata["original_numbers"]))


NUMBER_FILTERING = TaskRules(
    "number_filtering",
    item_checks=(
        ItemCheck(
            "answer writes a number as another one of the list is written",
            _keeps_another_notation,
        ),
    ),
)


# -- number_sorting --------------------------------------------------------------------


def _floats(text: str) -> list[float]:
    return [float(number) for number in json.loads(text.replace("'", '"'))]


def _numbers(answer: str, entry: Entry, library: LibraryScore) -> float:
    value = library(answer)
    return value if value and _floats(answer) == _floats(entry["answer"]) else 0.0


NUMBER_SORTING = TaskRules(
    "number_sorting",
    fix=ScorerFix(
        scorer_sha256="3f7732ea4cbf05a9c0902407457e283937adbbf14b0bb5b212540b7455c9fb06",
        fault="Sorted numbers within 1 of the right ones score 1.0, and so does NaN.",
        score=_numbers,
    ),
)
