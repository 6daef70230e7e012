"""Rules of the algorithmic tasks about strings of a few signs."""

from __future__ import annotations

import re
from collections import Counter

from rg_env.task_rules.answer_matching import one_answer
from rg_env.task_rules.rules import Entry, TaskRules

# -- ab --------------------------------------------------------------------------------

_TOKENS = re.compile(r"(?:[AB]#|#[AB])+")


def _with_spaces(answer: str, entry: Entry) -> str:
    tokens = "".join(answer.split())
    return re.sub("..(?!$)", r"\g<0> ", tokens) if _TOKENS.fullmatch(tokens) else answer


AB = TaskRules("ab", notation=_with_spaces)


# -- string_synthesis ------------------------------------------------------------------

_BLOCKS = "ABCabcxyz"
_RULES = ("ABC a", "AB c", "BC b", "CC c", "ac xy", "bb z")
"""The blocks that each rule removes, and those that it adds."""


def _with_rules_in_turn(entry: Entry) -> list[Entry]:
    """Return the entry for a "cycle" that uses each rule once, in turn.

    The library begins again with the first rule after each use of a rule.
    """
    counts = Counter(dict(zip("ABC", entry["metadata"]["initial_blocks"], strict=True)))
    before = None
    while counts != before:
        before = counts
        for rule in _RULES:
            removed, added = map(Counter, rule.split())
            if removed <= counts:
                counts = counts - removed + added
    return [{**entry, "answer": " ".join(str(counts[block]) for block in _BLOCKS)}]


STRING_SYNTHESIS = TaskRules(
    "string_synthesis",
    fix=one_answer(partial_credit=False, ignored="a b c"),  # `[A]=3 [B]=0`
    other_interpretations=_with_rules_in_turn,
)
