"""Rules of the games in which a board is filled."""

from __future__ import annotations

import re
from typing import Any

from rg_env.task_rules.reading.filler_words import is_filler_beside
from rg_env.task_rules.reading.grids import BIT, QUEENS, WHOLE, grid_of
from rg_env.task_rules.reading.lists import literal_guard
from rg_env.task_rules.rules import (
    MOST_FOR_A_WRONG_ANSWER,
    Entry,
    FasterFunction,
    LevelRepair,
    LibraryScore,
    ScorerFix,
    TaskRules,
)

# -- futoshiki and the sudokus ---------------------------------------------------------

# The library gives 0.9 times the share of cells that are right, the given ones
# included, so a copy of the puzzle with any numbers in its blanks collects half of the
# points and more. Who takes for each blank the first number that its row and column
# lack has half of the blanks right and solves nothing. So a grid that is not right
# scores a tenth at most: for the share of its blanks that are right beyond one in each
# row. Right numbers in another drawing, whose rules are other ones, score a half at
# most.

# What a grid that is not the right one scores at most.
MOST_FOR_A_PART = 0.1

_DRAWN = re.compile(r"[1-9|+\-<>∧∨^\s]+|\bv\b")  # noqa: RUF001
"""What a drawn grid may hold: its numbers, rules between them and their signs."""

Grid = list[list[int]]


def _read_rows(answer: str, size: int) -> Grid:
    """Return the lines that hold `size` digits, which is what the library reads."""
    lines = ([int(c) for c in line if c in "123456789"] for line in answer.split("\n"))
    return [row for row in lines if len(row) == size]


def score_number_grid(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score one grid by its blanks, with nothing but filler words beside it."""
    puzzle: Grid = entry["metadata"]["puzzle"]
    solution: Grid = entry["metadata"]["solution"]
    size = len(solution)
    rows = _read_rows(answer, size)
    one_grid = sum(map(answer.count, "123456789")) <= size * (size + 1)
    if len(rows) > size or not one_grid or not is_filler_beside(_DRAWN, answer):
        return 0.0
    value = library(answer)
    if rows == solution:
        return value if value == 1.0 else min(value, MOST_FOR_A_WRONG_ANSWER)
    return min(value, MOST_FOR_A_PART * _beyond_chance(rows, puzzle, solution))


def _beyond_chance(rows: Grid, puzzle: Grid, solution: Grid) -> float:
    """Return the share of right blanks beyond one in each row, in [0, 1)."""
    blanks = [
        (row, column)
        for row, cells in enumerate(puzzle)
        for column, given in enumerate(cells)
        if given == 0
    ]
    right = sum(r < len(rows) and rows[r][c] == solution[r][c] for r, c in blanks)
    by_chance = len({row for row, _ in blanks})
    if right <= by_chance:
        return 0.0
    return (right - by_chance) / (len(blanks) - by_chance)


def number_grid_fix(scorer_sha256: str) -> ScorerFix:
    """Return the fix of a task whose answer is a grid of numbers."""
    return ScorerFix(
        scorer_sha256=scorer_sha256,
        fault="Scores the given cells, and what any fill has right.",
        score=score_number_grid,
    )


FUTOSHIKI = TaskRules(
    "futoshiki",
    fix=number_grid_fix(
        "ec3ce1257de8220be8a73f69de63dfaa7395a33e239d730cb02497afaaf740cc"
    ),
)

MINI_SUDOKU = TaskRules(
    "mini_sudoku",
    fix=number_grid_fix(
        "164175209dc0eaa4a8b126280fcd17d96a3c42b6c7186fd4b3ccd1519a516517"
    ),
    level_repair=LevelRepair(
        {
            **{n: {"min_empty": 8, "max_empty": 9 + n} for n in (0, 1, 2)},
            **{n: {"min_empty": 8} for n in (3, 4)},
        },
        "every level has puzzles with 4 blanks, mostly one in a row, so that rows"
        " filled at random scored up to 0.61",
    ),
)

SUDOKU = TaskRules(
    "sudoku",
    fix=number_grid_fix(
        "164175209dc0eaa4a8b126280fcd17d96a3c42b6c7186fd4b3ccd1519a516517"
    ),
)


# -- kakurasu --------------------------------------------------------------------------


def _bits_alone(answer: str, entry: Entry, library: LibraryScore) -> float:
    return library(answer) if is_filler_beside(BIT, answer) else 0.0


KAKURASU = TaskRules(
    "kakurasu",
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


# -- n_queens --------------------------------------------------------------------------

# To find all boards on which no queen attacks another the library copies each of the
# 14,200 for 12 queens deeply. Here boards are made of the same twelve rows, which
# nobody writes to: an item's puzzle is a copy.

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
    guard=literal_guard(r"[_Q.\s]*"),
    notation=grid_of(QUEENS),
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
