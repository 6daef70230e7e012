"""group_anagrams: groups of words, and lists of them in palindrome_partitioning."""

from __future__ import annotations

import json
import re

from rg_env.task_rules.reading.grids import read_any_rows
from rg_env.task_rules.rules import Entry, TaskRules

_WORD = re.compile(r"[A-Za-z]+")
_MARKS = re.compile(
    "^[ \t]*(?:[-*\u2022][ \t]+|(?:group[ \t]+)?[0-9]{1,4}[.):][ \t]+)",
    re.MULTILINE | re.IGNORECASE,
)


def lists_of_words(answer: str, entry: Entry) -> str:
    """Write groups of words as JSON."""
    rows = read_any_rows(_MARKS.sub("", answer), _WORD)
    return answer if rows is None else json.dumps(rows)


RULES = TaskRules("group_anagrams", notation=lists_of_words)
