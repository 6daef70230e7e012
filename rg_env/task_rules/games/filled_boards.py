"""Rules of the games in which a board is filled."""

from __future__ import annotations

import re

from rg_env.task_rules.reading.filler_words import is_filler_beside
from rg_env.task_rules.reading.grids import (
    BIT,
    WHOLE,
    grid_of,
)
from rg_env.task_rules.reading.number_grids import number_grid_fix
from rg_env.task_rules.rules import (
    Entry,
    LevelRepair,
    LibraryScore,
    ScorerFix,
    TaskRules,
)

# -- futoshiki -------------------------------------------------------------------------

FUTOSHIKI = TaskRules(
    "futoshiki",
    fix=number_grid_fix(
        "ec3ce1257de8220be8a73f69de63dfaa7395a33e239d730cb02497afaaf740cc"
    ),
)


# -- kakurasu --------------------------------------------------------------------------


def _bits_alone(answer: str, entry: Entry, library: LibraryScore) -> float:
    return library(answer) if is_filler_beside(BIT, answer) else 0.0


KAKURASU = TaskRules(
    "kakurasu",
    notation=grid_of(BIT, compact=True),
    fix=ScorerFix(
        scorer_sha256="d408ee73a6daf81131ab7c2af62a26816e39f43e0e5cc8027d349d2ea03cfb1f",
        fault="Ignores everything but the digits 0 and 1, even a second answer.",
        score=_bits_alone,
    ),
)


# -- survo -----------------------------------------------------------------------------

WHOLE_NUMBER = re.compile(r"(?<!\S)[+-]?[0-9]+(?!\S)")
_SHORT_NUMBER = re.compile(r"[+-]?[0-9]{1,9}")
Matrix = list[list[int]]


def _read(answer: str) -> Matrix:
    rows = (
        [int(word) for word in line.split() if _SHORT_NUMBER.fullmatch(word)]
        for line in answer.split("\n")
    )
    return [row for row in rows if row]


def _is_filling(matrix: Matrix, puzzle: Matrix, numbers: list[int]) -> bool:
    """Say whether the blanks hold the numbers, each once, and all sums are right."""
    if [len(row) for row in matrix] != [len(row) for row in puzzle]:
        return False
    filled = []
    for row, given in zip(matrix, puzzle, strict=True):
        for number, fixed in zip(row, given, strict=True):
            if fixed == 0:
                filled.append(number)
            elif number != fixed:
                return False
    lines = [*matrix, *map(list, zip(*matrix, strict=True))]
    return sorted(filled) == sorted(numbers) and all(
        sum(line[:-1]) == line[-1] for line in lines
    )


def score_filled_matrix(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score one matrix with only filler words beside it; any filling is right."""
    if not is_filler_beside(WHOLE_NUMBER, answer):
        return 0.0
    metadata = entry["metadata"]
    if _is_filling(_read(answer), metadata["puzzle"], metadata["candidate_numbers"]):
        return 1.0
    return library(answer)


SURVO = TaskRules(
    "survo",
    notation=grid_of(WHOLE),
    fix=ScorerFix(
        scorer_sha256="ef0787e9e16f99d772ab75b517bc09ba26ea096c5d3810abfec6a43b65a20c16",
        fault=(
            "Ignores everything but whole numbers, even a second answer; accepts only"
            " one of several fillings."
        ),
        score=score_filled_matrix,
    ),
    level_repair=LevelRepair(
        {2: {"min_board_size": 5}, 3: {"min_board_size": 6}},
        "levels 2 and 3 ask for more empty cells than their smallest board has",
    ),
    is_rebuilt=True,
)
