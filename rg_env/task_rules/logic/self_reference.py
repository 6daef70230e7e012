"""self_reference: how many solutions there are."""

from __future__ import annotations

from rg_env.task_rules.common_answers import seldom_answered
from rg_env.task_rules.reading.numbers import as_number
from rg_env.task_rules.rules import TaskRules

RULES = TaskRules(
    "self_reference",
    notation=as_number,
    # 35 to 53 of 100 have 2 at every level.
    item_checks=(seldom_answered({"2": 2}),),
    fixed_level="its generator takes the difficulty and does not use it",
)
