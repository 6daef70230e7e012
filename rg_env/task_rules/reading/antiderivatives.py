"""A quick proof that an antiderivative is wrong: its slope at two places.

The library simplifies the difference between the answer's derivative and the integrand,
and pays if that is zero. Of wrong answers that takes 64 ms on average and seconds at
worst; to find a place where the two differ takes 2 ms. An answer for which none is
found is left to the library, so nobody is paid for passing here.
"""

from __future__ import annotations

from typing import Any

PLACES = ((7, 5), (13, 6))
"""Fractions, positive: there the identities of logarithms and roots hold as well."""

DIGITS = 20
TOLERANCE = 1e-6


def _value_at(expression: Any, variable: Any, place: Any) -> complex | None:
    """Return the value of an expression; None where it is no finite number."""
    try:
        value = complex(expression.evalf(DIGITS, subs={variable: place}))
    except (TypeError, ValueError, ArithmeticError):
        return None
    return value if abs(value) < float("inf") else None


def has_wrong_slope(answer: str, integrand: str, variable: str) -> bool:
    """Say whether the derivative of an answer is surely not the integrand.

    Args:
        answer: An expression that may be given to the library's parser.
        integrand: The library's own.
        variable: Of both.
    """
    # Takes half a second, and only a worker ever needs it.
    import sympy

    symbol = sympy.Symbol(variable)
    names = {variable: symbol, "C": sympy.Symbol("C")}
    try:
        slope = sympy.diff(sympy.parse_expr(answer, local_dict=names), symbol)
        wanted = sympy.parse_expr(integrand, local_dict={variable: symbol})
    except Exception:  # noqa: BLE001 - any text may come; the library judges it
        return False
    for numerator, denominator in PLACES:
        place = sympy.Rational(numerator, denominator)
        found = _value_at(slope, symbol, place)
        right = _value_at(wanted, symbol, place)
        if found is None or right is None:
            continue
        if abs(found - right) > TOLERANCE * (1 + abs(found) + abs(right)):
            return True
    return False
