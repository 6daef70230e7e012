r"""Grids as people write them: rows of cells, tables, lists of lists, LaTeX.

    1 2     1, 2     | 1 | 2 |     [[1, 2],     Row 1: 1 2     \begin{bmatrix} 1 & 2 \\
    3 4     3, 4     | 3 | 4 |      [3, 4]]     Row 2: 3 4     3 & 4 \end{bmatrix}

are one grid, and so are lines drawn between its rows. Each row has as many cells as the
first, and each cell is what the task's cells are; otherwise the text is no grid.
"""

from __future__ import annotations

import re

from rg_env.task_rules.reading.lists import plain
from rg_env.task_rules.reading.values import read_rows
from rg_env.task_rules.rules import Entry, Notation

Cells = list[list[str]]
_LATEX = re.compile(
    r"(?:\\left)?[\[(|.]?\s*\\begin\{([pbvBV]?matrix|smallmatrix|array)\}"
    r"(?:\{[lcr| ]*\})?(.*)\\end\{\1\}\s*(?:\\right)?[\])|.]?",
    re.DOTALL,
)
_BRACKETS = re.compile(r"\[?\s*(?:\[[^\[\]]*\][\s,;]*)+\]?")
_IN_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_BETWEEN_CELLS = re.compile("[\\s|,;&\u2502\u2503\u2551]+")
_ROW_MARK = re.compile(r"\s*(?:row|r)[ \t]*([0-9]{1,4})[ \t]*[:.)=]", re.IGNORECASE)
_LINES = frozenset("-=_\u2500\u2501\u2550\u2014")
_DRAWN = _LINES | frozenset(
    " \t+|:\u2502\u2503\u2551\u253c\u254b\u256c\u250c\u2510\u2514\u2518\u251c\u2524"
    "\u252c\u2534\u2554\u2557\u255a\u255d\u2560\u2563\u2566\u2569\u256a\u256b"
)
_QUOTES = "\"'\u201c\u201d\u2018\u2019"


def _is_drawn(line: str, cell: re.Pattern[str]) -> bool:
    """Say whether a line is drawn between rows, or is no line at all."""
    signs = set(line)
    if not signs <= _DRAWN:
        return False
    return signs <= set(" \t|") or not any(cell.fullmatch(s) for s in signs & _LINES)


def _cells(line: str) -> list[str]:
    cells = (cell.strip(_QUOTES) for cell in _BETWEEN_CELLS.split(line))
    return [cell for cell in cells if cell]


def _lines(text: str) -> list[str]:
    match = _LATEX.fullmatch(text)
    if match is not None:
        lines = match[2].replace(r"\hline", "").split(r"\\")
        return [line.strip() for line in lines]
    text = plain(text)
    if "[" in text:
        return _IN_BRACKETS.findall(text) if _BRACKETS.fullmatch(text) else []
    lines = text.split("\n")
    return lines[0].split(";") if len(lines) == 1 else lines


def read_any_rows(
    text: str, cell: re.Pattern[str], *, compact: bool = False
) -> Cells | None:
    """Read rows that need not have the same number of cells; see `read_grid`."""
    rows = read_rows(text)
    if rows is None:
        lines = [line for line in _lines(text) if not _is_drawn(line, cell)]
        marks = [_ROW_MARK.match(line) for line in lines]
        numbers = [int(mark[1]) for mark in marks if mark]
        if numbers and numbers != list(range(numbers[0], numbers[0] + len(lines))):
            return None
        starts = [mark.end() if mark else 0 for mark in marks]
        rows = [_cells(line[at:]) for line, at in zip(lines, starts, strict=True)]
    if compact and all(len(row) == 1 and len(row[0]) > 1 for row in rows):
        rows = [list(row[0]) for row in rows]
    if not rows or not all(rows):
        return None
    if not all(map(cell.fullmatch, set().union(*rows))):
        return None
    return rows


def read_grid(
    text: str, cell: re.Pattern[str], *, compact: bool = False
) -> Cells | None:
    """Read the rows of a grid, which have equal lengths; None where it is none.

    If `compact`, its cells, of one sign each, may stand without any space.
    """
    rows = read_any_rows(text, cell, compact=compact)
    if rows is None or any(len(row) != len(rows[0]) for row in rows):
        return None
    return rows


WHOLE = re.compile(r"-?[0-9]{1,9}")
DECIMAL = re.compile(r"-?[0-9]{1,9}(?:\.[0-9]{0,20})?")
DIGIT = re.compile(r"[0-9]")
BIT = re.compile(r"[01]")
QUEENS = re.compile(r"[_Q]")


def with_spaces(rows: Cells) -> str:
    """Write rows with a space between two cells."""
    return "\n".join(" ".join(row) for row in rows)


def grid_of(cell: re.Pattern[str], *, compact: bool = False) -> Notation:
    """Return the notation of a grid that has a space between two cells."""

    def written(answer: str, entry: Entry) -> str:
        rows = read_grid(answer, cell, compact=compact)
        return answer if rows is None else with_spaces(rows)

    return written
