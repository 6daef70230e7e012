"""Fixes of the category arithmetic."""

from __future__ import annotations

import pytest
from fixed_scores import both_scores, entry_of, fixed_score

from rg_env.answers.fixes.arithmetic_fixes import TIMES


def test_a_number_that_is_wrapped_keeps_the_credit_of_the_library() -> None:
    entry = entry_of("chain_sum", 7000)
    answer = f"The answer is {entry['answer']}"
    installed, fixed = both_scores("chain_sum", entry, answer)
    assert 0.0 < installed == fixed < 1.0


def test_a_number_times_one_or_halved_is_no_factorization() -> None:
    task, number = "prime_factorization", 2 * 2 * 2 * 3 * 41
    gold = f" {TIMES} ".join(["2", "2", "2", "3", "41"])
    entry = {"answer": gold, "metadata": {"number": number}}
    assert fixed_score(task, entry, str(number)) == 0.0
    halved = f"2 {TIMES} {number // 2}"
    assert fixed_score(task, entry, halved) == pytest.approx(0.125)


def test_a_negative_gold_answer_of_gsm_symbolic_is_right() -> None:
    entry = {"answer": "-1", "metadata": {}}
    task = "gsm_symbolic"
    assert fixed_score(task, entry, "-1") == 1.0
    assert fixed_score(task, entry, "1") < 0.05
