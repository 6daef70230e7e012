"""Rules of the games in which a board is filled."""

from __future__ import annotations

import re
from typing import Any

from rg_env.task_rules.reading.filler_words import is_filler_beside
from rg_env.task_rules.reading.grids import (
    BIT,
    DIGIT,
    WHOLE,
    grid_of,
    read_grid,
    with_spaces,
)
from rg_env.task_rules.reading.lists import literal_guard
from rg_env.task_rules.reading.number_grids import number_grid_fix
from rg_env.task_rules.rules import (
    Entry,
    FasterFunction,
    LevelRepair,
    LibraryScore,
    ScorerFix,
    TaskRules,
)

# -- futoshiki -------------------------------------------------------------------------

_BESIDE_NUMBERS = re.compile("[<>\u2227\u2228^v]")
_UPRIGHT = {"^": "\u2227", "v": "\u2228"}


def _as_drawn(answer: str, entry: Entry) -> str:
    """Write a grid as the puzzle is drawn.

    The rules between its numbers may be left out, all of them or none.
    """
    drawn = entry["answer"]
    rules = [_UPRIGHT.get(r, r) for r in _BESIDE_NUMBERS.findall(answer)]
    if rules and rules != _BESIDE_NUMBERS.findall(drawn):
        return answer
    rows = read_grid(_BESIDE_NUMBERS.sub(" ", answer), DIGIT, compact=True)
    size = entry["metadata"]["board_size"]
    if rows is None or len(rows) != size or len(rows[0]) != size:
        return answer
    cells = (cell for row in rows for cell in row)
    return DIGIT.sub(lambda match: next(cells), drawn)


FUTOSHIKI = TaskRules(
    "futoshiki",
    notation=_as_drawn,
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


# -- n_queens --------------------------------------------------------------------------

# n_queens: boards of queens.
#
# To find all boards on which no queen attacks another the library copies each of the
# 14,200 for 12 queens deeply. Here boards are made of the same twelve rows, which
# nobody writes to: an item's puzzle is a copy.


_SQUARE = re.compile(r"[_Q]")


def _with_spaces(answer: str, entry: Entry) -> str:
    rows = read_grid(answer.replace(r"\_", "_"), _SQUARE, compact=True)
    return answer if rows is None else with_spaces(rows)


Board = list[list[str]]


def _all_solutions(dataset: Any, n: int) -> list[Board]:
    """Return the boards of `_get_all_solutions`, in its order."""
    empty = ["_"] * n
    rows = [[*empty[:at], "Q", *empty[at + 1 :]] for at in range(n)]
    boards = []

    def place_below(board: Board, taken: int, falling: int, rising: int) -> None:
        """Place the other queens; the columns that are not free are bits."""
        if len(board) == n:
            boards.append(board)
            return
        free = ~(taken | falling | rising) & ((1 << n) - 1)
        while free:
            bit = free & -free
            free ^= bit
            longer = [*board, rows[bit.bit_length() - 1]]
            place_below(longer, taken | bit, (falling | bit) << 1, (rising | bit) >> 1)

    place_below([], 0, 0, 0)
    return boards


N_QUEENS = TaskRules(
    "n_queens",
    guard=literal_guard(r"[_Q.\s]*", "rows of _ and Q, plain or as lists of strings"),
    notation=_with_spaces,
    kept_signs="_",
    level_repair=LevelRepair(
        {0: {"n": 5}, 1: {"n": 7, "max_remove": 6}},
        "a board of 4 has two solutions and one of 6 four, and all queens may be"
        " removed, so that one board is right in up to 70 of 100 items",
    ),
    faster=(
        FasterFunction(
            "reasoning_gym.games.n_queens",
            "NQueensDataset._get_all_solutions",
            "f7bf1aaf33f46cf9",
            lambda own: _all_solutions,
        ),
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
