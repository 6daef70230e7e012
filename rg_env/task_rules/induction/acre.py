"""acre: whether a detector lights up."""

from __future__ import annotations

from rg_env.task_rules.reading.words import in_any_case
from rg_env.task_rules.rules import TaskRules

RULES = TaskRules(
    "acre",
    notation=in_any_case,
    fixed_level=(
        "the library has no curriculum for it, and its one parameter chooses"
        " between training and test items"
    ),
)
