"""countdown: sums of given numbers."""

from __future__ import annotations

from rg_env.task_rules.reading.expressions import expression_guard
from rg_env.task_rules.reading.sums import SUM_BOUNDS, as_sum, score_sum
from rg_env.task_rules.rules import Entry, ScorerFix, TaskRules


def _numbers_in_comment(entry: Entry) -> str:
    """Name the numbers in a comment behind a sum that uses none of them.

    The sum is the target in hexadecimal, which the search for numbers does not see.
    """
    numbers = " ".join(map(str, entry["metadata"]["numbers"]))
    return f"{entry['metadata']['target']:#x} # {numbers}"


RULES = TaskRules(
    "countdown",
    guard=expression_guard(
        SUM_BOUNDS, "whole numbers, + - * / ( ); up to 84 characters and 15 numbers"
    ),
    notation=as_sum,
    fix=ScorerFix(
        scorer_sha256="5af9a9d9c2e1db114541552e6804dbc456adb86e6db75c85ec1ef92ad322ac5e",
        fault="Also finds the numbers in a comment, in a decimal and behind a letter.",
        proof=_numbers_in_comment,
        score=score_sum,
    ),
)
