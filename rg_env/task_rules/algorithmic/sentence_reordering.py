"""sentence_reordering: words as one sentence."""

from __future__ import annotations

import re

from rg_env.task_rules.reading.values import read_list
from rg_env.task_rules.rules import Entry, TaskRules

_AROUND_WORDS = re.compile(r"(?<!\w)[^\w\s]+|[^\w\s]+(?!\w)|(?<!\w)_+|_+(?!\w)")


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


RULES = TaskRules("sentence_reordering", notation=_as_sentence)
