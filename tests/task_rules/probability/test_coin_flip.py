"""coin_flip: near probabilities."""

import pytest

from tests.support.fixed_scores import both_scores, fixed_score


@pytest.mark.parametrize(
    ("answer", "fixed"),
    [("0.3125", 1.0), ("5/16", 1.0), ("0.31", 0.5), ("0.3", 0.2), ("-0.3125", 0.0)],
)
def test_a_probability_is_paid_by_how_close_it_is(answer, fixed):
    entry = {"answer": "0.3125", "metadata": {}}
    assert fixed_score("coin_flip", entry, answer) == pytest.approx(fixed)


def test_zero_is_no_small_probability():
    entry = {"answer": "3.051757812e-05", "metadata": {}}
    assert both_scores("coin_flip", entry, "0") == (1.0, 0.0)
    assert fixed_score("coin_flip", entry, "0.00003") == 1.0
