"""Answers of one word, or of a few that the question names."""

from __future__ import annotations

from rg_env.task_rules.rules import Entry


def in_any_case(answer: str, entry: Entry) -> str:
    """Return the right answer for one that differs from it by upper case alone."""
    gold = entry.get("answer")
    if isinstance(gold, str) and answer.casefold() == gold.casefold():
        return gold
    return answer


_ENDS = " .\"'`*\u201c\u201d"


def but_for_its_ends(answer: str, entry: Entry) -> str:
    """Return the right sentence for one without, or with more, quotes around it."""
    gold = entry.get("answer")
    if isinstance(gold, str) and answer.strip(_ENDS) == gold.strip(_ENDS) != "":
        return gold
    return answer
