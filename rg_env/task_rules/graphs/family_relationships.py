"""Who is a parent-in-law of whom, as a story of family_relationships tells it."""

from __future__ import annotations

import re

from rg_env.task_rules.rules import Entry, ItemCheck, TaskRules

_COUPLE = re.compile(
    r"(\w+) is married to (\w+)\.(?: They have (?:a child|children) called ([^.]*)\.)?"
)


def is_parent_in_law(story: str, one: str, other: str) -> bool:
    """Say whether somebody is a parent of the one to whom the other is married."""
    couples = [
        (couple[1], couple[2], set(re.findall(r"\w+", couple[3] or "")))
        for couple in _COUPLE.finditer(story)
    ]
    spouses = {a: b for a, b, _ in couples} | {b: a for a, b, _ in couples}
    return any(
        one in (a, b) and spouses.get(other) in children for a, b, children in couples
    )


def _is_told_as_child(entry: Entry) -> bool:
    pair = entry["metadata"]["person1"], entry["metadata"]["person2"]
    is_said = entry["answer"].endswith("-in-law")
    return is_said and not is_parent_in_law(entry["question"], *pair)


_NEUTRAL = "Atlas Jayden Kai Logan Nova Phoenix Rain River Sage Sky Winter Zion"
NEUTRAL_NAMES = frozenset(_NEUTRAL.split())
"""Names of the library's men and women of which a reader does not know whose they are;
the question says nobody's sex."""

RULES = TaskRules(
    "family_relationships",
    item_checks=(
        ItemCheck("answer calls a child-in-law a parent-in-law", _is_told_as_child),
        ItemCheck(
            "answer depends on the sex of somebody with a name of both",
            lambda entry: entry["metadata"]["person1"] in NEUTRAL_NAMES,
        ),
        ItemCheck(
            "answer calls a niece or nephew by the sex of the aunt or uncle",
            lambda entry: entry["answer"] in ("niece", "nephew"),
        ),
    ),
)
