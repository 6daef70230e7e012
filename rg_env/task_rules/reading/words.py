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


def with_its_first_letter(answer: str, entry: Entry) -> str:
    """Write the first letter as the right answer has it; any sentence has a capital."""
    gold = entry.get("answer") or ""
    first = gold[:1] if gold[:1].upper() == answer[:1] else answer[:1]
    return first + answer[1:]
