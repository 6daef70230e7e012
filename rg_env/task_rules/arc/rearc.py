"""rearc: a board of colors."""

from __future__ import annotations

from rg_env.task_rules.arc.arc_agi import board_fix
from rg_env.task_rules.reading.grids import DIGIT, grid_of
from rg_env.task_rules.rules import ItemCheck, TaskRules

RULES = TaskRules(
    "rearc",
    notation=grid_of(DIGIT, compact=True),
    fix=board_fix("02467a410400d76e8720efca4f3378d9a7c3bccd6e4113a5136cce63f12bd740"),
    item_checks=(
        ItemCheck(
            "output is the input",
            lambda entry: bool(
                entry["metadata"]["output"] == entry["metadata"]["input"]
            ),
            answer_stands=True,
        ),
    ),
)
