"""list_functions: the list that a function gives."""

from __future__ import annotations

from rg_env.task_rules.reading.lists import WHOLE, in_brackets, list_of
from rg_env.task_rules.rules import TaskRules

RULES = TaskRules(
    "list_functions",
    notation=list_of(WHOLE, in_brackets, may_be_empty=True),
    fixed_level="the library has no curriculum and no parameter for it",
)
