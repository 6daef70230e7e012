"""ab: tokens of an A::B program."""

from __future__ import annotations

import re

from rg_env.task_rules.reading.lists import plain, read_sequence
from rg_env.task_rules.rules import Entry, TaskRules

_TOKENS = re.compile(r"(?:[AB]#|#[AB])+")


def _with_spaces(answer: str, entry: Entry) -> str:
    text = plain(answer).replace(r"\#", "#")
    found = read_sequence(text, _TOKENS)
    if found is None:
        return answer
    program = "".join(each[0] for each in found)
    return " ".join(program[at : at + 2] for at in range(0, len(program), 2))


RULES = TaskRules("ab", notation=_with_spaces)
