"""word_sorting: words in order."""

from __future__ import annotations

import re

from rg_env.task_rules.reading.lists import WORD, less_surplus, list_of
from rg_env.task_rules.rules import Entry, LibraryScore, ScorerFix, TaskRules


def _sorted_words(answer: str, entry: Entry, library: LibraryScore) -> float:
    gold = entry["metadata"]["sorted_words"]
    given = [word for word in re.split(r",\s*", answer) if word.strip()]
    return less_surplus(library(answer), max(0, len(given) - len(gold)), len(gold))


RULES = TaskRules(
    "word_sorting",
    notation=list_of(WORD, ", ".join),
    fix=ScorerFix(
        scorer_sha256="635fe0f126391fcfc53bf8b4108dbb2c4811abf0054dc224390d52d1718c7a73",
        fault="Words behind the last right one are ignored.",
        proof=lambda entry: (
            entry["answer"] + ", zz" * len(entry["metadata"]["sorted_words"])
        ),
        score=_sorted_words,
    ),
)
