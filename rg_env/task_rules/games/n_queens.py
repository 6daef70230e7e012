"""n_queens: boards of queens.

To find all boards on which no queen attacks another the library copies each of the
14,200 for 12 queens deeply. Here boards are made of the same twelve rows, which nobody
writes to: an item's puzzle is a copy.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from rg_env.task_rules.reading.grids import read_grid, with_spaces
from rg_env.task_rules.reading.lists import why_not_list
from rg_env.task_rules.rules import (
    Entry,
    FasterFunction,
    Guard,
    LevelRepair,
    OtherScore,
    TaskRules,
)

_ROWS = re.compile(r"[_Q.\s]*")
_SQUARE = re.compile(r"[_Q]")


def queens(answer: str, entry: Entry) -> str:
    """Write a board of queens with underscores and spaces."""
    rows = read_grid(answer.replace(r"\_", "_"), _SQUARE, compact=True)
    return answer if rows is None else with_spaces(rows)


Board = list[list[str]]


def make_get_all_solutions(own: Any) -> Callable[[Any, int], list[Board]]:
    """Return `_get_all_solutions`, which gives the boards in the library's order."""

    def all_solutions(dataset: Any, n: int) -> list[Board]:
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
                place_below(
                    [*board, rows[bit.bit_length() - 1]],
                    taken | bit,
                    (falling | bit) << 1,
                    (rising | bit) >> 1,
                )

        place_below([], 0, 0, 0)
        return boards

    return all_solutions


RULES = TaskRules(
    "n_queens",
    guard=Guard(
        "eval",
        "rows of _ and Q, plain or as lists of strings",
        lambda answer, gold: why_not_list(answer, _ROWS),
        evaluates=True,
    ),
    notation=queens,
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
            make_get_all_solutions,
        ),
    ),
    other_scores=(
        OtherScore(
            "the right answer as a Python list",
            "a part",
            "It is right once it is normalized.",
        ),
    ),
)
