"""rotten_oranges: minutes until all oranges are rotten."""

from __future__ import annotations

from rg_env.task_rules.common_answers import seldom_answered
from rg_env.task_rules.reading.numbers import as_number
from rg_env.task_rules.rules import TaskRules

RULES = TaskRules(
    "rotten_oranges",
    notation=as_number,
    # -1 is right in 38 of 100 at the defaults, 70 at 1.0.
    item_checks=(seldom_answered({"-1": 5}),),
)
