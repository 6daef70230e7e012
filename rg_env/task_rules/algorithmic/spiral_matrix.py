"""spiral_matrix: the numbers of a matrix in a spiral."""

from __future__ import annotations

from rg_env.task_rules.reading.lists import WHOLE, list_of, literal_guard
from rg_env.task_rules.rules import A_LIST, TaskRules

RULES = TaskRules(
    "spiral_matrix",
    guard=literal_guard(r"[0-9\s]*", "numbers, plain, with commas or as a list"),
    notation=list_of(WHOLE, " ".join),
    other_scores=(A_LIST,),
)
