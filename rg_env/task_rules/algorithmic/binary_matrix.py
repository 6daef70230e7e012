"""binary_matrix: distances to the nearest zero."""

from __future__ import annotations

from rg_env.task_rules.reading.grids import WHOLE, grid_of
from rg_env.task_rules.reading.lists import literal_guard
from rg_env.task_rules.rules import A_LIST, TaskRules

RULES = TaskRules(
    "binary_matrix",
    guard=literal_guard(
        r"[0-9\s]*",
        "rows of numbers, plain or as lists; 20,000 characters at the top level",
    ),
    notation=grid_of(WHOLE),
    other_scores=(A_LIST,),
)
