"""word_sorting: words in order."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rg_env.task_rules.partial_credit import partial_credit
from rg_env.task_rules.reading.lists import WORD, less_surplus, list_of
from rg_env.task_rules.rules import Entry, LibraryScore, ScorerFix, TaskRules


def _in_place(words: Sequence[str], gold: Sequence[str]) -> float:
    return sum(a == b for a, b in zip(words, gold, strict=False)) / len(gold)


def _sorted_words(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score words in their place, surplus ones and those of the question included."""
    gold = entry["metadata"]["sorted_words"]
    given = [word.strip() for word in re.split(r",\s*", answer) if word.strip()]
    if given == gold:
        return 1.0
    if any(len(word.split()) > 1 for word in given):
        return 0.0  # something is said beside the words
    surplus = max(0, len(given) - len(gold))
    share = less_surplus(_in_place(given, gold), surplus, len(gold))
    shown = entry["metadata"].get("transformed_words", ())
    return partial_credit(share, _in_place(shown, gold))


RULES = TaskRules(
    "word_sorting",
    notation=list_of(WORD, ", ".join),
    fix=ScorerFix(
        scorer_sha256="635fe0f126391fcfc53bf8b4108dbb2c4811abf0054dc224390d52d1718c7a73",
        fault="Ignores words after the last right one; gives 0.2 to a copy of the"
        " question, and 0.9 if one word is wrong.",
        score=_sorted_words,
    ),
)
