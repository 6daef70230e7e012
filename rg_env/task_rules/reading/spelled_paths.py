"""Paths: directions, nodes of a graph, words that differ by one letter."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rg_env.task_rules.reading.notation import Spelling
from rg_env.task_rules.reading.written_lists import (
    BETWEEN_STEPS,
    plain,
    read_sequence,
)

_DIRECTION = re.compile(
    r"(?:(?:go|move)\s+)?(up|down|left|right|[udlr])\b", re.IGNORECASE
)
_NODE = re.compile(r"(?<!^[-\u2212])(?<![\s,;>][-\u2212])[0-9]{1,12}\b")
"""A dash is between two nodes, or before a blank; else it is a sign."""

_BETWEEN_RUNGS = re.compile("[\\s,;>\u2192\"'\u201c\u201d\u2018\u2019\u2010-\u2015-]*")
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


def nodes(answer: str, entry: Mapping[str, Any]) -> str:
    """Write a path of numbered nodes with spaces."""
    found = read_sequence(plain(answer), _NODE, BETWEEN_STEPS)
    return answer if found is None else " ".join(node[0] for node in found)


def ladder(answer: str, entry: Mapping[str, Any]) -> str:
    """Write a ladder of words with commas; each of them is as long as the last one."""
    length = len(entry["metadata"]["end_word"])
    rung = re.compile(rf"[A-Za-z]{{{length}}}(?![A-Za-z])")
    found = read_sequence(plain(answer), rung, _BETWEEN_RUNGS)
    return answer if found is None else ",".join(word[0].upper() for word in found)


SPELLINGS: Mapping[str, Spelling] = {
    "path_star": nodes,
    "shortest_path": directions,
    "word_ladder": ladder,
}
"""Task to its spelling."""
