"""sentence_reordering: words as one sentence."""

from __future__ import annotations

from rg_env.task_rules.reading.values import read_list
from rg_env.task_rules.rules import Entry, TaskRules


def _as_sentence(answer: str, entry: Entry) -> str:
    """Write a list of words as one sentence."""
    listed = read_list(answer)
    return answer if listed is None else " ".join(listed)


RULES = TaskRules("sentence_reordering", notation=_as_sentence)
