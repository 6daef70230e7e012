"""futoshiki: grids of numbers with rules between them."""

from __future__ import annotations

import re

from rg_env.task_rules.reading.grids import DIGIT, read_grid
from rg_env.task_rules.reading.number_grids import number_grid_fix
from rg_env.task_rules.rules import Entry, TaskRules

_BESIDE_NUMBERS = re.compile("[<>\u2227\u2228^v]")
_UPRIGHT = {"^": "\u2227", "v": "\u2228"}


def _as_drawn(answer: str, entry: Entry) -> str:
    """Write a grid as the puzzle is drawn.

    The rules between its numbers may be left out, all of them or none.
    """
    drawn = entry["answer"]
    rules = [_UPRIGHT.get(r, r) for r in _BESIDE_NUMBERS.findall(answer)]
    if rules and rules != _BESIDE_NUMBERS.findall(drawn):
        return answer
    rows = read_grid(_BESIDE_NUMBERS.sub(" ", answer), DIGIT, compact=True)
    size = entry["metadata"]["board_size"]
    if rows is None or len(rows) != size or len(rows[0]) != size:
        return answer
    cells = (cell for row in rows for cell in row)
    return DIGIT.sub(lambda match: next(cells), drawn)


RULES = TaskRules(
    "futoshiki",
    notation=_as_drawn,
    fix=number_grid_fix(
        "ec3ce1257de8220be8a73f69de63dfaa7395a33e239d730cb02497afaaf740cc"
    ),
)
