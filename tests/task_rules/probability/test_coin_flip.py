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


@pytest.mark.parametrize(
    ("answer", "fixed"),
    [
        ("+0.2734375", 1.0),
        ("2.734375e-01", 1.0),
        ("35/128", 1.0),
        ("0.2734", 1.0),
        ("0.27344", 1.0),
        ("0.273", 0.5),
        ("0.2734376", 0.5),
        ("0.27351", 0.5),
    ],
)
def test_near_the_right_probability_only_a_rounded_one_is_right(answer, fixed):
    rational = {"numerator": 35, "denominator": 128}
    entry = {"answer": "0.2734375", "metadata": {"rational": rational}}
    assert fixed_score("coin_flip", entry, answer) == fixed
