"""Rules of the games that fill a board."""

from __future__ import annotations

from typing import Any

from rg_env.task_rules.one_rule import one_answer
from rg_env.task_rules.reading.grids import (
    QUEENS,
    WHOLE,
    grid_of,
    read_grid,
)
from rg_env.task_rules.reading.lists import literal_guard
from rg_env.task_rules.rules import (
    Entry,
    FasterFunction,
    LevelRepair,
    LibraryScore,
    ScorerFix,
    TaskRules,
)

# -- futoshiki and the sudokus ---------------------------------------------------------

FUTOSHIKI = TaskRules(
    "futoshiki",
    fix=one_answer(
        partial_credit=False, passed_over="< > \N{LOGICAL AND} \N{LOGICAL OR} v ^ |"
    ),
)

MINI_SUDOKU = TaskRules(
    "mini_sudoku",
    fix=one_answer(partial_credit=False),
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
    fix=one_answer(partial_credit=False),
)


# -- kakurasu --------------------------------------------------------------------------


KAKURASU = TaskRules(
    "kakurasu",
    fix=one_answer(any_number=True),
)


# -- survo -----------------------------------------------------------------------------

Matrix = list[list[int]]


def _is_filling(matrix: Matrix, puzzle: Matrix, numbers: list[int]) -> bool:
    """Return whether the blanks hold the numbers, each once, and all sums are right."""
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


def _any_filling(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score a matrix with any right filling."""
    metadata = entry["metadata"]
    filled = [list(map(int, row)) for row in read_grid(answer, WHOLE) or ()]
    return float(_is_filling(filled, metadata["puzzle"], metadata["candidate_numbers"]))


SURVO = TaskRules(
    "survo",
    notation=grid_of(WHOLE),
    fix=ScorerFix(
        _any_filling,
        "Accepts only one of several fillings; ignores everything but whole numbers.",
    ),
    level_repair=LevelRepair(
        {2: {"min_board_size": 5}, 3: {"min_board_size": 6}},
        "levels 2 and 3 ask for more empty cells than their smallest board has",
    ),
    is_rebuilt=True,
)


# -- n_queens --------------------------------------------------------------------------

# The library makes a deep copy of each of the 14,200 solutions for 12 queens. Here all
# boards share twelve rows, which is safe because an item's puzzle is a copy.

Board = list[list[str]]


def _all_solutions(dataset: Any, n: int) -> list[Board]:
    """Return the boards of the library's `_get_all_solutions`, in its order."""
    empty = ["_"] * n
    rows = [[*empty[:at], "Q", *empty[at + 1 :]] for at in range(n)]
    boards = []

    def place_below(board: Board, taken: int, falling: int, rising: int) -> None:
        """Place the other queens; `taken`, `falling` and `rising` are sets of bits."""
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
            module="reasoning_gym.games.n_queens",
            name="NQueensDataset._get_all_solutions",
            digest="f7bf1aaf33f46cf9",
            make=lambda own: _all_solutions,
        ),
    ),
)
