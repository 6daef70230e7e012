"""Grids of numbers of which some are given: futoshiki and the sudokus.

The library gives 0.9 times the share of cells that are right, the given ones included,
so a copy of the puzzle with any numbers in its blanks collects half of the points and
more. Who takes for each blank the first number that its row and column lack has half of
the blanks right and solves nothing. So a grid that is not right scores a tenth at most:
for the share of its blanks that are right beyond one in each row. Right numbers in
another drawing, whose rules are other ones, score a half at most.
"""

from __future__ import annotations

import re

from rg_env.task_rules.partial_credit import MOST_FOR_A_WRONG_ANSWER
from rg_env.task_rules.reading.filler_words import is_filler_beside
from rg_env.task_rules.rules import Entry, LibraryScore, ScorerFix

MOST_FOR_A_PART = 0.1
"""What a grid that is not the right one scores at most."""

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
