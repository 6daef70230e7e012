"""sudoku: whether a board has one solution.

The library asks it for each number that it would take away, with sets of values made
anew for each cell. Here the values of a row, column or box are bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Board = list[list[int]]

SIZE = 9
ALL_VALUES = (1 << SIZE) - 1


def make_count_solutions(own: Any) -> Callable[[Any, Board, int], int]:
    """Return `_count_solutions`, which counts no further than its limit."""

    def count_solutions(dataset: Any, board: Board, limit: int = 2) -> int:
        rows, columns, boxes = [0] * SIZE, [0] * SIZE, [0] * SIZE
        empty = []
        for row in range(SIZE):
            for column in range(SIZE):
                box = row // 3 * 3 + column // 3
                if not board[row][column]:
                    empty.append((row, column, box))
                    continue
                bit = 1 << (board[row][column] - 1)
                rows[row] |= bit
                columns[column] |= bit
                boxes[box] |= bit

        def count(enough: int) -> int:
            if not empty:
                return 1
            fewest, chosen, free = SIZE + 1, 0, 0
            for place, (row, column, box) in enumerate(empty):
                values = ALL_VALUES & ~(rows[row] | columns[column] | boxes[box])
                choices = values.bit_count()
                if choices < fewest:
                    fewest, chosen, free = choices, place, values
                    if choices < 2:
                        break
            row, column, box = empty.pop(chosen)
            found = 0
            while free and found < enough:
                bit = free & -free
                free ^= bit
                rows[row] ^= bit
                columns[column] ^= bit
                boxes[box] ^= bit
                found += count(enough - found)
                rows[row] ^= bit
                columns[column] ^= bit
                boxes[box] ^= bit
            empty.append((row, column, box))
            return found

        return count(limit)

    return count_solutions
