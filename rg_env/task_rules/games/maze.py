"""maze: the length of the shortest way."""

from __future__ import annotations

from rg_env.task_rules.common_answers import seldom_answered
from rg_env.task_rules.reading.numbers import as_number
from rg_env.task_rules.rules import TaskRules

RULES = TaskRules(
    "maze",
    notation=as_number,
    # The shortest distance that is asked for, 42 of 100 at the defaults.
    item_checks=(seldom_answered({"5": 2}),),
)
