"""string_insertion: a string with letters inserted."""

from __future__ import annotations

import re

from rg_env.task_rules.common_answers import seldom
from rg_env.task_rules.reading.lists import literal_guard, plain
from rg_env.task_rules.reading.values import read_list
from rg_env.task_rules.rules import Entry, TaskRules

_LETTER = re.compile(r"[A-E]")
_LETTERS = re.compile(r"[A-E]+")


def _as_one_string(answer: str, entry: Entry) -> str:
    text = plain(answer)
    listed = read_list(text)
    if listed is not None and all(_LETTER.fullmatch(each) for each in listed):
        return "".join(listed)
    return text if _LETTERS.fullmatch(text) else answer


RULES = TaskRules(
    "string_insertion",
    guard=literal_guard(r"[A-Z]*", "capital letters, plain or as a list of characters"),
    notation=_as_one_string,
    item_checks=(
        seldom(
            "string has no place for an insertion",
            lambda entry: bool(entry["answer"] == entry["metadata"]["string"]),
            one_in=50,  # 92 of 100 at the defaults
        ),
    ),
)
