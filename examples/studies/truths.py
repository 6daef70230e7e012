"""Which answers are right, by solvers that read no reference answer and no scorer.

Each takes an entry of the library and returns a function that knows the right answers.
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


def sorted_words(entry: Mapping[str, Any]) -> IsRight:
    """The words in the order of their characters' codes, or the other way round."""
    asked, _, words = entry["question"].rpartition("list: ")
    right = sorted(words.strip().split(", "), reverse="in descending order" in asked)
    return lambda answer: re.split(r"\s*,\s*", answer.strip()) == right


def total(entry: Mapping[str, Any]) -> IsRight:
    """The sum, which may be in bold."""
    terms = re.findall(r"([+-]?) ?(\d+)", entry["question"].rpartition(":")[2])
    number = sum(int(sign + digits) for sign, digits in terms)
    return lambda answer: answer.strip("*") == str(number)
