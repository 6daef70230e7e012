"""n_queens: all boards on which no queen attacks another.

The library copies each of the 14,200 boards for 12 queens deeply. Here boards are made
of the same few rows, which nobody writes to: an item's puzzle is a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Board = list[list[str]]


def _placements(n: int) -> Iterator[tuple[int, ...]]:
    """Yield each row's column for the first queen in the left half, middle included."""

    def below(
        placed: tuple[int, ...], taken: int, falling: int, rising: int
    ) -> Iterator[tuple[int, ...]]:
        if len(placed) == n:
            yield placed
            return
        free = ~(taken | falling | rising) & ((1 << n) - 1)
        while free:
            bit = free & -free
            free ^= bit
            yield from below(
                (*placed, bit.bit_length() - 1),
                taken | bit,
                (falling | bit) << 1,
                (rising | bit) >> 1,
            )

    for column in range((n + 1) // 2):
        bit = 1 << column
        yield from below((column,), bit, bit << 1, bit >> 1)


def make_get_all_solutions(own: Any) -> Callable[[Any, int], list[Board]]:
    """Return `_get_all_solutions`, which gives the boards in the library's order.

    That is the order of the columns from the first row on, in which the mirror images
    of the first half come backwards.
    """

    def all_solutions(dataset: Any, n: int) -> list[Board]:
        empty = ["_"] * n
        rows = [[*empty[:at], "Q", *empty[at + 1 :]] for at in range(n)]
        left = list(_placements(n))
        mirrored = [
            tuple(n - 1 - column for column in placed)
            for placed in reversed(left)
            if placed[0] < n // 2
        ]
        return [[rows[column] for column in placed] for placed in left + mirrored]

    return all_solutions
