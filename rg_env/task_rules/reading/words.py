"""Answers that are short: a word, a sentence, a number."""

from __future__ import annotations

from rg_env.task_rules.rules import Entry, Notation

# Characters of an answer that is one number or a sentence, with room to spare.
SHORT = 400


def of_short_text(notation: Notation) -> Notation:
    """Return a notation that leaves long answers alone and sees no run of spaces.

    Its patterns may then look for spaces in more than one place, at no cost. Lines, and
    columns between tabs, stay apart, so that no number is read across two of them.
    """

    def written(answer: str, entry: Entry) -> str:
        if len(answer) > SHORT:
            return answer
        lines = answer.replace("\t", "\n").splitlines()
        text = "\n".join(filter(None, (" ".join(line.split()) for line in lines)))
        spelled = notation(text, entry)
        return answer if spelled == text else spelled

    return written


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
