"""list_functions: the list that a function gives."""

from __future__ import annotations

from rg_env.task_rules.reading.lists import WHOLE, in_brackets, list_of, or_empty
from rg_env.task_rules.rules import TaskRules

RULES = TaskRules(
    "list_functions",
    notation=or_empty(list_of(WHOLE, in_brackets)),
    fixed_level="the library has no curriculum and no parameter for it",
)
