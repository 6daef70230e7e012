"""Paths: directions, nodes of a graph, words that differ by one letter."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rg_env.task_rules.reading.lists import (
    BETWEEN_STEPS,
    plain,
    read_sequence,
)
from rg_env.task_rules.rules import Notation as Spelling

_DIRECTION = re.compile(
    r"(?:(?:go|move)\s+)?(up|down|left|right|[udlr])\b", re.IGNORECASE
)

_IN_FULL = {"u": "up", "d": "down", "l": "left", "r": "right"}


def directions(answer: str, entry: Mapping[str, Any]) -> str:
    """Write a path as directions with spaces; `infeasible` in any case."""
    if answer.lower() == "infeasible":
        return "infeasible"
    found = read_sequence(plain(answer), _DIRECTION, BETWEEN_STEPS)
    if found is None:
        return answer
    words = [step[1].lower() for step in found]
    return " ".join(_IN_FULL.get(word, word) for word in words)


SPELLINGS: Mapping[str, Spelling] = {
    "shortest_path": directions,
}
"""Task to its spelling."""
