"""Paths: directions, nodes of a graph, words that differ by one letter."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rg_env.task_rules.reading.moves import nodes
from rg_env.task_rules.reading.notation import Spelling
from rg_env.task_rules.reading.written_lists import plain, read_sequence

_BETWEEN_RUNGS = re.compile("[\\s,;>\u2192\"'\u201c\u201d\u2018\u2019\u2010-\u2015-]*")


def ladder(answer: str, entry: Mapping[str, Any]) -> str:
    """Write a ladder of words with commas; each of them is as long as the last one."""
    length = len(entry["metadata"]["end_word"])
    rung = re.compile(rf"[A-Za-z]{{{length}}}(?![A-Za-z])")
    found = read_sequence(plain(answer), rung, _BETWEEN_RUNGS)
    return answer if found is None else ",".join(word[0].upper() for word in found)


SPELLINGS: Mapping[str, Spelling] = {
    "path_star": nodes,
    "word_ladder": ladder,
}
"""Task to its spelling."""
