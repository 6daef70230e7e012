"""Short answers: a word, a sentence, a number."""

from __future__ import annotations

import functools

from rg_env.task_rules.rules import Entry, Notation

# The longest short answer, in characters.
SHORT = 400


def of_short_text(notation: Notation) -> Notation:
    """Return a notation that skips long answers and gets single spaces.

    Its patterns can then match spaces in several places in linear time. Lines, and
    columns between tabs, stay separate, so that no number spans two lines.
    """

    @functools.wraps(notation)
    def written(answer: str, entry: Entry) -> str:
        if len(answer) > SHORT:
            return answer
        lines = answer.replace("\t", "\n").splitlines()
        text = "\n".join(filter(None, (" ".join(line.split()) for line in lines)))
        spelled = notation(text, entry)
        return answer if spelled == text else spelled

    return written


def with_its_first_letter(answer: str, entry: Entry) -> str:
    """Write the first letter in the case of the reference."""
    gold = entry.get("answer") or ""
    first = gold[:1] if gold[:1].upper() == answer[:1] else answer[:1]
    return first + answer[1:]
