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
