"""sentence_reordering: words as one sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rg_env.task_rules.partial_credit import partial_credit
from rg_env.task_rules.reading.values import read_list
from rg_env.task_rules.rules import Entry, LibraryScore, ScorerFix, TaskRules

_QUOTES = "\"'\u201c\u201d\u2018\u2019"
_BEFORE = rf"[{_QUOTES}(\[$*_`\u2022\u2014-]+"
_BEHIND = rf"[{_QUOTES})\]*_`.,;:!?\u2122\u2014-]+"
_AROUND_WORDS = re.compile(rf"(?<!\S){_BEFORE}|{_BEHIND}(?!\S)")
"""Signs around words that say nothing of their order; any other may deny it."""


def _words(text: str) -> list[str]:
    return _AROUND_WORDS.sub("", text.replace("\u2019", "'")).split()


def _as_sentence(answer: str, entry: Entry) -> str:
    """Write a list of words as one sentence, and its words as the question does.

    What is asked for is their order: a period or a quote that is not copied changes
    nothing of it.
    """
    listed = read_list(answer)
    sentence = answer if listed is None else " ".join(listed)
    gold = entry.get("answer")
    if isinstance(gold, str) and _words(gold) and _words(sentence) == _words(gold):
        return gold
    return sentence


def _in_place(words: Sequence[str], gold: Sequence[str]) -> float:
    pairs = zip(words, gold, strict=False)
    return sum(a.lower() == b.lower() for a, b in pairs) / len(gold)


def _order(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score the right order, and another one by its words in place.

    What the question's own order has in place scores nothing, nor do the two words that
    their capital and their full stop put first and last.
    """
    value, gold = library(answer), entry["answer"].split()
    if value == 1.0 or len(answer.split()) != len(gold):
        return value
    shown = entry["question"].partition(": ")[2].split()
    trivial = max(_in_place(shown, gold), 2 / len(gold))
    return partial_credit(value, trivial)


RULES = TaskRules(
    "sentence_reordering",
    notation=_as_sentence,
    fix=ScorerFix(
        scorer_sha256="5f10e9fc7c8a5273119e610a1e6f08d3a187c1a1bdf0d1840ad598472289910b",
        fault="Gives 0.9 if two words are in the wrong order, and credit for the first"
        " and the last word, which the capital letter and the full stop show.",
        score=_order,
    ),
)
