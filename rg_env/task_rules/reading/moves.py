"""Moves and steps as people write them, and how often a number makes a move repeat."""

from __future__ import annotations

import re
from collections.abc import Callable

from rg_env.task_rules.reading.lists import (
    BETWEEN_MOVES,
    BETWEEN_STEPS,
    plain,
    read_sequence,
)
from rg_env.task_rules.rules import Entry, Notation


def moves_of(
    element: re.Pattern[str],
    written: Callable[[re.Match[str]], str],
    joined: Callable[[list[str]], str],
    between: re.Pattern[str] = BETWEEN_MOVES,
) -> Notation:
    """Return the notation of a sequence of moves."""

    def notation(answer: str, entry: Entry) -> str:
        found = read_sequence(plain(answer), element, between)
        return answer if found is None else joined([written(move) for move in found])

    return notation


_NODE = re.compile(r"(?<!^[-\u2212])(?<![\s,;>][-\u2212])[0-9]{1,12}\b")
"""A dash is between two nodes, or before a blank; else it is a sign."""


def nodes(answer: str, entry: Entry) -> str:
    """Write a path of numbered nodes with spaces."""
    found = read_sequence(plain(answer), _NODE, BETWEEN_STEPS)
    return answer if found is None else " ".join(node[0] for node in found)


def repetitions(digits: list[str], max_digits: int) -> int | None:
    """Return how often a simulation is made to turn by the numbers beside its moves.

    Args:
        digits: The number of each move; "" counts as 1.
        max_digits: The longest number.

    Returns:
        Their sum; None where one has too many digits.
    """
    if any(len(number) > max_digits for number in digits):
        return None
    return sum(int(number) if number else 1 for number in digits)
