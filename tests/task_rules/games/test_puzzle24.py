"""puzzle24: the numbers of its question."""

from __future__ import annotations

import pytest

from tests.support.fixed_scores import fixed_score


@pytest.mark.parametrize(
    "answer", ["", "4*6", "8*5*10*6", "(8+5)*10/6 + 7/3", "10*(8 - 5) - 6.0", "24"]
)
def test_only_the_numbers_given_make_24(answer: str) -> None:
    entry = {"answer": "10*(8 - 5) - 6", "metadata": {"numbers": [8, 5, 10, 6]}}
    assert fixed_score("puzzle24", entry, answer) <= 0.05
    assert fixed_score("puzzle24", entry, " 10 * (8-5) - 6\n") == 1.0
