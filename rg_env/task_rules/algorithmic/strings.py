"""Rules of the algorithmic tasks about strings of a few signs."""

from __future__ import annotations

import re

from rg_env.task_rules.reading.lists import list_of, literal_guard, plain, read_sequence
from rg_env.task_rules.rules import Entry, Notation, TaskRules, seldom

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

STRING_INSERTION = TaskRules(
    "string_insertion",
    guard=literal_guard(r"[A-Z]*"),
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
_UNNAMED = list_of(_COUNT, " ".join)


def counts_of(names: tuple[str, ...]) -> Notation:
    """Return the notation of counts that may have their names before them, in order."""
    pairs = (rf"{re.escape(name)}\s*[:=]\s*([0-9]{{1,6}})" for name in names)
    named = re.compile(r"[\s,;]+".join(pairs))

    def notation(answer: str, entry: Entry) -> str:
        match = named.fullmatch(answer)
        return " ".join(match.groups()) if match else _UNNAMED(answer, entry)

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
    "string_synthesis", notation=counts_of(_BLOCKS), other_readings=_each_rule_in_turn
)
