"""n_queens: boards of queens."""

from __future__ import annotations

import re

from rg_env.task_rules.reading.grids import read_grid, with_spaces
from rg_env.task_rules.reading.lists import literal_guard
from rg_env.task_rules.rules import Entry, LevelRepair, TaskRules

_SQUARE = re.compile(r"[_Q]")


def _with_spaces(answer: str, entry: Entry) -> str:
    rows = read_grid(answer.replace(r"\_", "_"), _SQUARE, compact=True)
    return answer if rows is None else with_spaces(rows)


RULES = TaskRules(
    "n_queens",
    guard=literal_guard(r"[_Q.\s]*", "rows of _ and Q, plain or as lists of strings"),
    notation=_with_spaces,
    kept_signs="_",
    level_repair=LevelRepair(
        {0: {"n": 5}, 1: {"n": 7, "max_remove": 6}},
        "a board of 4 has two solutions and one of 6 four, and all queens may be"
        " removed, so that one board is right in up to 70 of 100 items",
    ),
)
