"""How solvers read the text of a question, and what they say of a gold answer."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Literal

Verdict = Literal["right", "refuted", "not unique", "not knowable"]

Solver = Callable[[str, str], Verdict]
"""From question and gold answer to a verdict. It raises an error where it cannot read
the question: then the gold answer was not judged."""

Grid = list[list[Any]]


def right_if(is_right: bool) -> Verdict:
    return "right" if is_right else "refuted"


def only(solutions: list[Any], gold: Any) -> Verdict:
    """Return the verdict on a gold answer where the first two solutions are known."""
    if gold not in solutions:
        return "refuted"
    return "right" if len(solutions) == 1 else "not unique"


def computed(compute: Callable[[str], Any]) -> Solver:
    """Return the solver that knows the one right text."""
    return lambda question, gold: right_if(str(compute(question)) == gold.strip())


def one_of(readings: Callable[[str], set[str]]) -> Solver:
    """Return the solver that knows a right text for each reading of the question."""

    def solver(question: str, gold: str) -> Verdict:
        lines = [" ".join(line.split()) for line in gold.strip().splitlines()]
        return right_if("\n".join(lines) in readings(question))

    return solver


def found(pattern: str, text: str) -> tuple[str, ...]:
    """Return the groups of a pattern; raises `ValueError` where it is not there."""
    match = re.search(pattern, text, re.DOTALL)
    if match is None:
        raise ValueError(f"{pattern!r} is not in the question")
    return match.groups()


def integers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"-?\d+", text)]


def grid(text: str) -> list[list[str]]:
    """Return the cells of a grid whose rows are lines and whose cells are words."""
    return [line.split() for line in text.strip("\n").splitlines() if line.strip()]


def number_grid(text: str) -> list[list[int]]:
    return [[int(cell) for cell in row] for row in grid(text)]


_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda a, b: Fraction(a) / Fraction(b),
    ast.Pow: operator.pow,
}
_UNARY: dict[type, Callable[[Any], Any]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}


def _value(node: ast.AST, text: str) -> Any:
    if isinstance(node, ast.Expression):
        return _value(node.body, text)
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, text), _value(node.right, text)
        return _BINARY[type(node.op)](left, right)
    if isinstance(node, ast.UnaryOp):
        return _UNARY[type(node.op)](_value(node.operand, text))
    if isinstance(node, ast.Constant):
        written = ast.get_source_segment(text, node) or ""
        return Fraction(written) if "." in written else int(written, 0)
    raise ValueError(f"{text!r} is no arithmetic")


def exact(expression: str) -> Any:
    text = expression.strip()
    return _value(ast.parse(text, mode="eval"), text)
