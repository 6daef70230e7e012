"""Fixes of the category algebra."""

from __future__ import annotations

import pytest
from fixed_scores import fixed_score


@pytest.mark.parametrize("answer", ["", '""', "no real solutions", "None"])
def test_an_equation_without_solution_is_answered_by_saying_so(answer: str) -> None:
    entry = {"answer": "", "metadata": {}}
    assert fixed_score("polynomial_equations", entry, answer) == 1.0
    assert fixed_score("polynomial_equations", entry, "I do not know") == 0.0
