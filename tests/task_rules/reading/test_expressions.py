"""Calculations are exact, and an expression is bounded even if parts of it cancel."""

from fractions import Fraction

import pytest

from rg_env.task_rules.reading.expressions import ExpressionBounds, why_not_expression
from rg_env.task_rules.reading.numbers import exact_value

# -- expressions -----------------------------------------------------------------------


def test_sizes_are_bounded_where_names_can_cancel():
    bounds = ExpressionBounds(names=frozenset("x"), powers=True)
    assert why_not_expression("2**(x/x*19)", bounds) is None
    assert why_not_expression("2**(x/x*21)", bounds) == "an exponent is too large"


def test_the_denominators_of_a_sum_multiply():
    bounds = ExpressionBounds(powers=True)
    parts = [f"1/{n}" for n in range(10**20 - 4, 10**20)]
    assert why_not_expression(f"({'+'.join(parts[:3])})**20", bounds) is None
    # The numerator has 4,046 bits, the denominator 5,315.
    too_large = "a number in it would be too large"
    assert why_not_expression(f"({'+'.join(parts)})**20", bounds) == too_large


# -- sums ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        *("2**3", "1/0", "2+", "0x2", "1_0", "2 # 3", "()", "٣", "1 2"),
        *("", "(" * 9_000),
    ],
)
def test_a_text_that_is_no_plain_calculation_has_no_value(text):
    assert exact_value(text) is None


def test_a_long_number_is_read_in_one_pass():
    """It would take an hour if each digit began a decimal."""
    assert exact_value("9" * 400_000 + "x") is None


def test_a_calculation_is_exact():
    assert exact_value("-(1 + 2)/3*+4") == -4
    assert exact_value("(0.1 + 0.2)/3.0") == Fraction(1, 10)
