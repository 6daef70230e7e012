"""string_synthesis: counts of blocks."""

from __future__ import annotations

from rg_env.task_rules.algorithmic.string_splitting import counts_of
from rg_env.task_rules.rules import TaskRules

_BLOCKS = tuple(f"{a}{c}{b}" for a, b in ("[]", "{}", "()") for c in "ABC")


RULES = TaskRules("string_synthesis", notation=counts_of(_BLOCKS))
