"""spell_backward: a word from its end."""

from __future__ import annotations

import re

from rg_env.task_rules.partial_credit import partial_credit
from rg_env.task_rules.reading.lists import less_surplus
from rg_env.task_rules.reading.notation import of_short_text
from rg_env.task_rules.rules import Entry, LibraryScore, ScorerFix, TaskRules

_FROM_TO = re.compile(r"(\w+) ?(?:[-=]>|\u2192) ?(\S+)")
_SPELLED_OUT = re.compile(r"\w(?:([- ,.]| - |, )\w(?:\1\w)*)")


def _as_word(answer: str, entry: Entry) -> str:
    """Write a word alone: `sun -> nus`, as the question shows it, and `n-u-s`."""
    match = _FROM_TO.fullmatch(answer)
    word = entry.get("metadata", {}).get("word", "")
    if match is not None and match[1].lower() == str(word).lower():
        answer = match[2]
    match = _SPELLED_OUT.fullmatch(answer)
    return answer if match is None else answer.replace(match[1], "")


def _letters(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score letter by letter, surplus letters included.

    The word as it stands has its middle right and every pair that is the same from both
    ends, 0.38 of words of three letters; so half of the letters score 0, and so does
    the word itself.
    """
    gold, word = entry["answer"].lower(), entry["metadata"]["word"].lower()
    if answer.lower() == gold:
        return library(answer)
    if not all(sign.isalnum() or sign in gold for sign in answer):
        return 0.0
    surplus = max(0, len(answer) - len(gold))
    share = less_surplus(library(answer), surplus, len(gold))
    same = sum(a == b for a, b in zip(word, gold, strict=False)) / len(gold)
    return partial_credit(share, max(0.5, same))


RULES = TaskRules(
    "spell_backward",
    notation=of_short_text(_as_word),
    fix=ScorerFix(
        scorer_sha256="1e862479b7149349ccb68e64a83431f9268367addf40bcffaeddb4d6d37fa62e",
        fault="Ignores letters after the last right one; the sum can exceed 1; gives"
        " 0.38 to an unchanged word of three letters, and 0.9 if one letter is wrong.",
        score=_letters,
    ),
)
