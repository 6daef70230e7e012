"""Scorers that compare numbers with the library's `compute_decimal_reward`.

It compares as decimals, tolerating a sign, zeros and thousands separators, which stays.
Only its fallback, credit for an answer that contains the gold one as text, is held to
wrappers; see rg_env.answers.fixes.substring. The task's own `score_answer` is one line
that calls it, so a fix's digest does not cover the function itself.
"""

from __future__ import annotations

import decimal
from collections.abc import Mapping
from typing import Any

from rg_env.answers.fixes.fix import LibraryScore
from rg_env.answers.fixes.substring import is_wrapper


def _same_number(answer: str, gold: str) -> bool:
    try:
        return decimal.Decimal(answer) == decimal.Decimal(gold)
    except decimal.InvalidOperation:
        return False


def score_decimal(
    answer: str, entry: Mapping[str, Any], library: LibraryScore
) -> float:
    """Score where the library calls `compute_decimal_reward(strip_commas=True)`."""
    bare, gold = answer.replace(",", ""), entry["answer"].replace(",", "")
    if _same_number(bare, gold) or is_wrapper(bare, gold):
        return library(answer)
    return 0.0
