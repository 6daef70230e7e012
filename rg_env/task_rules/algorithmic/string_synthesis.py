"""string_synthesis: counts of blocks that six rules combine."""

from __future__ import annotations

from rg_env.task_rules.algorithmic.string_splitting import counts_of
from rg_env.task_rules.rules import Entry, TaskRules

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


RULES = TaskRules(
    "string_synthesis",
    notation=counts_of(_BLOCKS),
    other_readings=_each_rule_in_turn,
)
