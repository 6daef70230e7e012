"""products: a product of numbers."""

from __future__ import annotations

from rg_env.task_rules.arithmetic.chain_sum import DECIMAL_FIX
from rg_env.task_rules.common_answers import seldom
from rg_env.task_rules.reading.numbers import as_number
from rg_env.task_rules.rules import TaskRules

RULES = TaskRules(
    "products",
    notation=as_number,
    fix=DECIMAL_FIX,
    item_checks=(
        seldom(
            "answer is one of its factors",
            lambda entry: (
                entry["answer"] in entry["metadata"]["expression"].split(" * ")
            ),
            one_in=4,  # one factor is 0 or 1 in 36 of 100 at 0.0
        ),
    ),
)
