"""The bounds of an expression hold whatever cancels in it."""

from __future__ import annotations

from rg_env.task_rules.reading.expressions import (
    ExpressionBounds,
    why_not_expression,
)


def test_sizes_are_bounded_where_names_can_cancel() -> None:
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
