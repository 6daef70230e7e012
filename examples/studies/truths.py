"""Which answers are right, by solvers that read no reference answer and no scorer.

Each takes an entry of the library and returns a function that knows the right answers,
or None where the question admits several readings.
"""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

IsRight = Callable[[str], bool]


def spelled_backward(entry: Mapping[str, Any]) -> IsRight:
    """The word from its last letter to its first."""
    word = entry["question"].rpartition(" ")[2]
    return lambda answer: answer.lower() == word[::-1].lower()


@functools.cache
def _words() -> set[str]:
    """The words of the library's text, whose import would take a second."""
    spec = importlib.util.find_spec("reasoning_gym")
    folder = Path(str(spec and spec.origin)).parent / "data"
    text = (folder / "in_the_year_2889.txt").read_text(encoding="utf-8")
    return set(re.findall(r"\b\w+\b", text))


def unjumbled(entry: Mapping[str, Any]) -> IsRight:
    """Words of the library's text with the letters of those that are asked."""
    known = _words()
    given = entry["question"].rpartition(":")[2].split()

    def is_right(answer: str) -> bool:
        words = answer.split()
        letters = list(map(sorted, words)) == list(map(sorted, given))
        return letters and known.issuperset(words)

    return is_right


def halting(entry: Mapping[str, Any]) -> IsRight:
    """Whether no cell lives after 20 steps on a board without edges."""
    rows = re.findall(r"\[([01 ]+)\]", entry["question"])
    board = np.array([[int(cell) for cell in row.split()] for row in rows])
    moves = [move for move in product((-1, 0, 1), repeat=2) if move != (0, 0)]
    for _ in range(20):
        near = sum(np.roll(board, move, (0, 1)) for move in moves)
        board = ((near == 3) | ((near == 2) & (board == 1))).astype(int)
    return lambda answer: answer == str(not board.any())


def rectangles(entry: Mapping[str, Any]) -> IsRight | None:
    """How many outlines add up to the picture, if every way has as many."""
    lines = entry["question"].partition("grid below?\n")[2].split("\n")[:-2]
    height, width = len(lines), max(map(len, lines))
    places = product(range(height), range(width))
    cells = {(y, x): " #█".index(lines[y][x]) for y, x in places}

    def counts(left: dict[tuple[int, int], int]) -> set[int]:
        corner = min((cell for cell, n in left.items() if n), default=None)
        if corner is None:
            return {0}
        found = set()
        y, x = corner
        for y2, x2 in product(range(y + 2, height), range(x + 2, width)):
            sides = {(b, a) for b in (y, y2) for a in range(x, x2 + 1)}
            sides |= {(b, a) for b in range(y, y2 + 1) for a in (x, x2)}
            if all(left[cell] for cell in sides):
                rest = {cell: n - (cell in sides) for cell, n in left.items()}
                found |= {1 + n for n in counts(rest)}
        return found

    found = counts(cells)
    return (lambda answer: answer == str(min(found))) if len(found) == 1 else None


def total(entry: Mapping[str, Any]) -> IsRight:
    """The sum, which may be in bold."""
    terms = re.findall(r"([+-]?) ?(\d+)", entry["question"].rpartition(":")[2])
    number = sum(int(sign + digits) for sign, digits in terms)
    return lambda answer: answer.strip("*") == str(number)
