"""basic_arithmetic: the value of a calculation."""

from __future__ import annotations

from rg_env.task_rules.reading.numbers import as_number
from rg_env.task_rules.rules import OtherScore, TaskRules

RULES = TaskRules(
    "basic_arithmetic",
    notation=as_number,
    other_scores=(
        OtherScore(
            "`7 + x` for 7",
            "above 0",
            "Beside the right answer may stand what can be no second one.",
        ),
    ),
)
