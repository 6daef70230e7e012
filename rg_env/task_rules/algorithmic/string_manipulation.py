"""string_manipulation: a string after some rules."""

from __future__ import annotations

from rg_env.task_rules.common_answers import seldom
from rg_env.task_rules.rules import TaskRules

RULES = TaskRules(
    "string_manipulation",
    item_checks=(
        seldom(
            "string is one that no rule changes",
            lambda entry: bool(entry["answer"] == entry["metadata"]["string"]),
            one_in=4,  # 34 to 48 of 100 at the defaults
        ),
    ),
)
