"""rotate_matrix: a turned matrix."""

from __future__ import annotations

from rg_env.task_rules.common_answers import seldom
from rg_env.task_rules.reading.grids import WHOLE, grid_of
from rg_env.task_rules.rules import TaskRules

RULES = TaskRules(
    "rotate_matrix",
    notation=grid_of(WHOLE),
    item_checks=(
        seldom(
            "rotation is by whole turns",
            lambda entry: entry["answer"] in entry["question"],  # 36 of 100 at 1.0
            one_in=4,
        ),
    ),
)
