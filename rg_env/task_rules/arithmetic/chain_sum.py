"""chain_sum: a sum; its fix is that of products as well."""

from __future__ import annotations

from rg_env.task_rules.reading.filler_words import is_wrapper
from rg_env.task_rules.reading.numbers import as_number, same_number
from rg_env.task_rules.rules import Entry, LibraryScore, ScorerFix, TaskRules


def _decimal(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score a number, or a wrapper of it.

    The library's `compute_decimal_reward` compares as decimals, tolerating a sign,
    zeros and thousands separators, which stays. Only its fallback, credit for an answer
    that contains the gold one as text, is held to wrappers. The tasks' own scorer is
    one line that calls it, so the digest does not cover the function itself.
    """
    bare, gold = answer.replace(",", ""), entry["answer"].replace(",", "")
    if same_number(bare, gold) or is_wrapper(bare, gold):
        return library(answer)
    return 0.0


DECIMAL_FIX = ScorerFix(
    scorer_sha256="419e44f8d29e1743c1500a09ff4cc239b004fbace7be3c580f90fbd4a15e99e7",
    fault="Gives credit for a longer number that contains the right one.",
    score=_decimal,
)
"""The scorer fix of chain_sum and products."""

RULES = TaskRules("chain_sum", notation=as_number, fix=DECIMAL_FIX)
