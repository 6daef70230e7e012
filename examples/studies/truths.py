"""Which answers are right, by solvers that read no reference answer and no scorer.

Each takes an entry of the library and returns a function that knows the right answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np

IsRight = Callable[[str], bool]


def spelled_backward(entry: Mapping[str, Any]) -> IsRight:
    """The word from its last letter to its first."""
    word = entry["question"].rpartition(" ")[2]
    return lambda answer: answer.lower() == word[::-1].lower()


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
