"""Rules of the algorithmic tasks about strings of a few signs."""

from __future__ import annotations

import re

from rg_env.task_rules.common_answers import seldom
from rg_env.task_rules.reading.lists import list_of, literal_guard, plain, read_sequence
from rg_env.task_rules.reading.values import read_list, read_value
from rg_env.task_rules.rules import Entry, Notation, TaskRules

# -- ab --------------------------------------------------------------------------------

_TOKENS = re.compile(r"(?:[AB]#|#[AB])+")


def _with_spaces(answer: str, entry: Entry) -> str:
    text = plain(answer).replace(r"\#", "#")
    tokens = read_sequence(text, _TOKENS)
    if tokens is None:
        return answer
    program = "".join(each[0] for each in tokens)
    return " ".join(program[at : at + 2] for at in range(0, len(program), 2))


AB = TaskRules("ab", notation=_with_spaces)


# -- string_insertion ------------------------------------------------------------------

_LETTER = re.compile(r"[A-E]")
_LETTERS = re.compile(r"[A-E]+")


def _as_one_string(answer: str, entry: Entry) -> str:
    text = plain(answer)
    listed = read_list(text)
    if listed is not None and all(_LETTER.fullmatch(each) for each in listed):
        return "".join(listed)
    return text if _LETTERS.fullmatch(text) else answer


STRING_INSERTION = TaskRules(
    "string_insertion",
    guard=literal_guard(r"[A-Z]*", "capital letters, plain or as a list of characters"),
    notation=_as_one_string,
    item_checks=(
        seldom(
            "string has no place for an insertion",
            lambda entry: bool(entry["answer"] == entry["metadata"]["string"]),
            one_in=50,  # 92 of 100 at the defaults
        ),
    ),
)


# -- string_splitting ------------------------------------------------------------------

_COUNT = re.compile(r"[0-9]{1,6}\b")
_BULLETS = re.compile("^[ \t]*[-*\u2022][ \t]+", re.MULTILINE)


def counts_of(names: tuple[str, ...]) -> Notation:
    """Return the notation of counts that may have their names beside them."""
    kind = r"(?:units?\s+of\s+|machines?\s+|parts?\s+|blocks?\s+)*"
    gap = r"(?:[\s,;|]|\band\b)+"
    behind = gap.join(rf"([0-9]{{1,6}})\s*{kind}{re.escape(name)}" for name in names)
    before = gap.join(
        rf"{kind}{re.escape(name)}\s*[:=\u2192]\s*([0-9]{{1,6}})" for name in names
    )
    forms = [re.compile(form, re.IGNORECASE) for form in (behind, before)]
    unnamed = list_of(_COUNT, " ".join)

    def notation(answer: str, entry: Entry) -> str:
        text = _BULLETS.sub("", plain(answer))
        for form in forms:
            match = form.fullmatch(text)
            if match is not None:
                return " ".join(match.groups())
        try:
            named = read_value(answer)
        except ValueError:
            named = None
        if isinstance(named, dict) and sorted(named) == sorted(names):
            return " ".join(str(named[name]) for name in names)
        return unnamed(answer, entry)

    return notation


STRING_SPLITTING = TaskRules("string_splitting", notation=counts_of(tuple("ABCXYZ")))


# -- string_synthesis ------------------------------------------------------------------

_BLOCKS = tuple(f"{a}{c}{b}" for a, b in ("[]", "{}", "()") for c in "ABC")

_CHANGES = (
    (-1, -1, -1, 1, 0, 0, 0, 0, 0),
    (-1, -1, 0, 0, 0, 1, 0, 0, 0),
    (0, -1, -1, 0, 1, 0, 0, 0, 0),
    (0, 0, -2, 0, 0, 1, 0, 0, 0),
    (0, 0, 0, -1, 0, -1, 1, 1, 0),
    (0, 0, 0, 0, -2, 0, 0, 0, 1),
)
"""What one use of each rule adds to the counts of the blocks."""


def _each_rule_in_turn(entry: Entry) -> list[Entry]:
    """Return the entry with the rules used once each in turn, as "cycle" may be read.

    The library begins anew with the first rule after each use of one.
    """
    counts, before = [*entry["metadata"]["initial_blocks"], *([0] * 6)], [0]
    while counts != before:
        before = counts
        for change in _CHANGES:
            after = [a + b for a, b in zip(counts, change, strict=True)]
            counts = counts if min(after) < 0 else after
    return [{**entry, "answer": " ".join(map(str, counts))}]


STRING_SYNTHESIS = TaskRules(
    "string_synthesis",
    notation=counts_of(_BLOCKS),
    other_readings=_each_rule_in_turn,
)
