"""What the questions of aiw tell of brothers and colleagues."""

from __future__ import annotations

import re

from rg_env.task_rules.reading.numbers import as_number
from rg_env.task_rules.rules import Entry, ItemCheck, TaskRules

_CIRCLES = re.compile(
    r"(\d+) female colleagues\. .* and (\d+) female colleagues in total\."
    r" .*\bMatilda\b",
    re.DOTALL,
)
_BROTHERS = re.compile(
    r"(\w+) has .*?(\d+) brothers\b.*? does (\w+)'s brother have\?", re.DOTALL
)


def women_around_matilda(question: str) -> int | None:
    """Return how many female colleagues she has, None where it is not about her.

    In her own circle, to which a woman belongs, they are as many as that woman has: she
    herself is one of them, and the woman is one of hers. In the other she is one of
    those that the man has.
    """
    circles = _CIRCLES.search(question)
    if circles is None:
        return None
    return int(circles[1]) + int(circles[2]) - 1


def has_no_such_brother(question: str) -> bool:
    """Say whether the brother of somebody is asked for who is the only brother."""
    told = _BROTHERS.search(question)
    return told is not None and told[1] != told[3] and int(told[2]) == 1


def _has_other_women(entry: Entry) -> bool:
    women = women_around_matilda(entry["question"])
    return women is not None and women != int(entry["answer"])


RULES = TaskRules(
    "aiw",
    notation=as_number,
    item_checks=(
        ItemCheck("answer leaves out women whom the question names", _has_other_women),
        ItemCheck(
            "question asks for the brother of an only brother",
            lambda entry: has_no_such_brother(entry["question"]),
        ),
    ),
)
