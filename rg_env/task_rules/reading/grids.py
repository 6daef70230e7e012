"""Parses grids as people write them: rows of cells, tables, lists of lists.

    1 2     1, 2     | 1 | 2 |     [[1, 2],     [[1 2]
    3 4     3, 4     | 3 | 4 |      [3, 4]]      [3 4]]

are the same grid. All rows have as many cells as the first, and every cell matches the
task's pattern; otherwise the text is no grid.
"""

from __future__ import annotations

import re

from rg_env.task_rules.reading.lists import plain
from rg_env.task_rules.reading.values import read_rows
from rg_env.task_rules.rules import Entry, Notation

Cells = list[list[str]]
_BRACKETS = re.compile(r"\[?\s*(?:\[[^\[\]]*\][\s,;]*)+\]?")
_IN_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_BETWEEN_CELLS = re.compile("[\\s|,;&\u2502\u2503\u2551]+")
_QUOTES = "\"'\u201c\u201d\u2018\u2019"


def _cells(line: str) -> list[str]:
    cells = (cell.strip(_QUOTES) for cell in _BETWEEN_CELLS.split(line))
    return [cell for cell in cells if cell]


def read_grid(text: str, cell: re.Pattern[str]) -> Cells | None:
    """Parse the rows of a grid; None if the text is no grid.

    Example:
        >>> read_grid("| 1 | 2 |", WHOLE)
        [['1', '2']]
    """
    rows = read_rows(text)
    if rows is None:
        lines = plain(text).replace(";", "\n").split("\n")
        if "[" in text:
            lines = _IN_BRACKETS.findall(text) if _BRACKETS.fullmatch(text) else []
        rows = [_cells(line) for line in lines if line.strip("|+:- \t")]
    if not rows or not all(rows) or any(len(row) != len(rows[0]) for row in rows):
        return None
    return rows if all(map(cell.fullmatch, set().union(*rows))) else None


WHOLE = re.compile(r"-?[0-9]{1,9}")
DECIMAL = re.compile(r"-?[0-9]{1,9}(?:\.[0-9]{0,20})?")
QUEENS = re.compile(r"[_Q]")


def grid_of(cell: re.Pattern[str]) -> Notation:
    """Return the notation that writes a grid with a space between two cells."""

    def written(answer: str, entry: Entry) -> str:
        rows = read_grid(answer, cell)
        return answer if rows is None else "\n".join(map(" ".join, rows))

    return written
