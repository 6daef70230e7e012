"""n_queens: boards of queens.

To find all boards on which no queen attacks another the library copies each of the
14,200 for 12 queens deeply. Here boards are made of the same twelve rows, which nobody
writes to: an item's puzzle is a copy.
"""

from __future__ import annotations

import re
from typing import Any

from rg_env.task_rules.reading.grids import read_grid, with_spaces
from rg_env.task_rules.reading.lists import literal_guard
from rg_env.task_rules.rules import (
    Entry,
    FasterFunction,
    LevelRepair,
    TaskRules,
)

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


RULES = TaskRules(
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
