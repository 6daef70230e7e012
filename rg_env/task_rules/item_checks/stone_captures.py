"""The moves of Black that capture white stones at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

Board = Sequence[Sequence[str]]
"""Rows from the top; "X" is black, "O" white and "." empty."""

Point = tuple[int, int]


def _beside(board: Board, point: Point) -> Iterator[tuple[Point, str]]:
    row, column = point
    for r, c in (
        (row - 1, column),
        (row + 1, column),
        (row, column - 1),
        (row, column + 1),
    ):
        if 0 <= r < len(board) and 0 <= c < len(board[r]):
            yield (r, c), board[r][c]


def _white_group(board: Board, stone: Point) -> tuple[set[Point], set[Point]]:
    """Return the stones of a group and its liberties."""
    stones, liberties, waiting = {stone}, set[Point](), [stone]
    while waiting:
        for point, mark in _beside(board, waiting.pop()):
            if mark == ".":
                liberties.add(point)
            elif mark == "O" and point not in stones:
                stones.add(point)
                waiting.append(point)
    return stones, liberties


def stones_captured_at(board: Board) -> Counter[str]:
    """Return the moves that capture, each with the number of its stones.

    A move is named as in the question: a letter for the column from the left, and the
    number of the row from below. A group with one liberty is taken by a stone there.
    """
    captured: Counter[str] = Counter()
    seen: set[Point] = set()
    for row, marks in enumerate(board):
        for column, mark in enumerate(marks):
            if mark != "O" or (row, column) in seen:
                continue
            stones, liberties = _white_group(board, (row, column))
            seen |= stones
            if len(liberties) == 1:
                ((r, c),) = liberties
                captured[f"{chr(ord('A') + c)}{len(board) - r}"] += len(stones)
    return captured
