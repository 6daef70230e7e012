"""Computes the exact value of a sum in the four operations, and runs no code.

A text of digits, `+ - * / ( )` and spaces is parsed into a tree and computed in
fractions. Powers, names and comments are not allowed.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from fractions import Fraction

_PLAIN = re.compile(r"[0-9+\-*/()\s]+")
_OPERATIONS: Mapping[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def _value(node: ast.expr) -> Fraction:
    """Compute a tree; raises ValueError for anything but the four operations."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return Fraction(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        value = _value(node.operand)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return _OPERATIONS[type(node.op)](_value(node.left), _value(node.right))
    raise ValueError("none of the four operations")


def _worked_out(text: str) -> Fraction | None:
    if not _PLAIN.fullmatch(text):
        return None
    try:
        return _value(ast.parse(" ".join(text.split()), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return None


_DECIMAL = re.compile(r"(?<!\d)(\d+)\.(\d+)")


def exact_value(text: str) -> Fraction | None:
    """Return the value of a calculation, also with decimals; None if it has none.

    Example:
        >>> exact_value("(1 + 2) / 0.5")
        Fraction(6, 1)
    """

    def as_fraction(match: re.Match[str]) -> str:
        return f"({int(match[1] + match[2])}/1{'0' * len(match[2])})"

    return _worked_out(_DECIMAL.sub(as_fraction, text))
