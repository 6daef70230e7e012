"""Grids of numbers and signs, however their rows and cells are kept apart."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rg_env.task_rules.reading.grids import Rows, read_grid
from rg_env.task_rules.rules import Notation as Spelling

_WHOLE = re.compile(r"-?[0-9]{1,9}")
_DECIMAL = re.compile(r"-?[0-9]{1,9}(?:\.[0-9]{0,20})?")
_DIGIT = re.compile(r"[0-9]")
_BIT = re.compile(r"[01]")
_SQUARE = re.compile(r"[_Q]")
_SIGN_OF_EMOJI = re.compile("[\u2705\u274c\u2714\u2716]")
_BESIDE_NUMBERS = re.compile("[<>\u2227\u2228^v]")
_UPRIGHT = {"^": "\u2227", "v": "\u2228"}


def _with_spaces(rows: Rows) -> str:
    return "\n".join(" ".join(row) for row in rows)


def _grid(cell: re.Pattern[str], *, compact: bool = False) -> Spelling:
    """Return the spelling of a grid that has a space between two cells."""

    def spelling(answer: str, entry: Mapping[str, Any]) -> str:
        rows = read_grid(answer, cell, compact=compact)
        return answer if rows is None else _with_spaces(rows)

    return spelling


def queens(answer: str, entry: Mapping[str, Any]) -> str:
    """Write a board of queens with underscores and spaces."""
    rows = read_grid(answer.replace(r"\_", "_"), _SQUARE, compact=True)
    return answer if rows is None else _with_spaces(rows)


def emoji(answer: str, entry: Mapping[str, Any]) -> str:
    """Write a grid of emoji without anything between them."""
    rows = read_grid(answer.replace("\ufe0f", ""), _SIGN_OF_EMOJI, compact=True)
    return answer if rows is None else "\n".join("".join(row) for row in rows)


def numbers_with_rules(answer: str, entry: Mapping[str, Any]) -> str:
    """Write a grid of futoshiki as the puzzle is drawn.

    The rules between its numbers may be left out, all of them or none.
    """
    drawn = entry["answer"]
    rules = [_UPRIGHT.get(r, r) for r in _BESIDE_NUMBERS.findall(answer)]
    if rules and rules != _BESIDE_NUMBERS.findall(drawn):
        return answer
    rows = read_grid(_BESIDE_NUMBERS.sub(" ", answer), _DIGIT, compact=True)
    size = entry["metadata"]["board_size"]
    if rows is None or len(rows) != size or len(rows[0]) != size:
        return answer
    cells = (cell for row in rows for cell in row)
    return _DIGIT.sub(lambda match: next(cells), drawn)


SPELLINGS: Mapping[str, Spelling] = {
    "futoshiki": numbers_with_rules,
    "kakurasu": _grid(_BIT, compact=True),
    "mini_sudoku": _grid(_DIGIT, compact=True),
    "modulo_grid": emoji,
    "n_queens": queens,
    "sudoku": _grid(_DIGIT, compact=True),
    "survo": _grid(_WHOLE),
}
"""Task to its spelling."""
