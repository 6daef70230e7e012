"""Grids of numbers of which some are given: futoshiki and the sudokus.

The library pays 0.9 times the share of cells that are right, the given ones included,
so a copy of the puzzle with any numbers in its blanks collects half of the points and
more. Here the share is that of the blanks. One wrong cell in an otherwise right grid
keeps what the library pays, and so does a right grid in another format.
"""

from __future__ import annotations

import re

from rg_env.answers.fixes.scorer_fix import Entry, LibraryScore
from rg_env.answers.fixes.talk_around_answers import is_talk_beside

MIN_BLANKS = 4
"""With fewer blanks one wrong cell is no near miss."""

DRAWN = re.compile(r"[1-9|+\-<>∧∨^\s]+|\bv\b")  # noqa: RUF001
"""What a drawn grid may hold: its numbers, rules between them and their signs."""

Grid = list[list[int]]


def read_rows(answer: str, size: int) -> Grid:
    """Return the lines that hold `size` digits, which is what the library reads."""
    lines = ([int(c) for c in line if c in "123456789"] for line in answer.split("\n"))
    return [row for row in lines if len(row) == size]


def score_number_grid(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score one grid by its blanks, with nothing but talk beside it."""
    puzzle: Grid = entry["metadata"]["puzzle"]
    solution: Grid = entry["metadata"]["solution"]
    size = len(solution)
    rows = read_rows(answer, size)
    one_grid = sum(map(answer.count, "123456789")) <= size * (size + 1)
    if len(rows) > size or not one_grid or not is_talk_beside(DRAWN, answer):
        return 0.0
    value = library(answer)
    cells = [(row, column) for row in range(len(rows)) for column in range(size)]
    right = [(r, c) for r, c in cells if rows[r][c] == solution[r][c]]
    blanks = sum(cell == 0 for row in puzzle for cell in row)
    near_miss = len(right) >= size * size - 1 and blanks >= MIN_BLANKS
    if near_miss or not right or not blanks:
        return value
    share_of_blanks = sum(puzzle[r][c] == 0 for r, c in right) / blanks
    share_of_cells = len(right) / size**2
    return value * min(1.0, share_of_blanks / share_of_cells)


def all_blanks_wrong(entry: Entry) -> str:
    """Copy the puzzle and fill every blank with a wrong number."""
    puzzle: Grid = entry["metadata"]["puzzle"]
    solution: Grid = entry["metadata"]["solution"]
    size = len(solution)
    return "\n".join(
        " ".join(
            str(given or solution[row][column] % size + 1)
            for column, given in enumerate(cells)
        )
        for row, cells in enumerate(puzzle)
    )
