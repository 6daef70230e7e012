"""n_queens: all boards on which no queen attacks another.

The library copies each of the 14,200 boards for 12 queens deeply. Here boards are made
of the same twelve rows, which nobody writes to: an item's puzzle is a copy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
