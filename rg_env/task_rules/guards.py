"""Which answers must not reach the library's scorer of a task.

Nine scorers of reasoning-gym execute the text of an answer and several more can be
made to run for hours by a few characters. One row below says for each such task what
the danger is, what an honest answer holds, and how a text is read to see whether it is
one. What is refused scores 0; the library would give it no more than its floor, or
would have to run it to know.

Covered: execution of text; exponent towers and huge numbers; names with repetitions;
truth tables over invented variables; comparisons that are more than linear; nesting.
Not covered: how long `sympy.simplify` takes for an ordinary wrong integral, and answers
that are right for the wrong reason, which the scorer's fixes are for. The general limit
on the length of an answer comes before this.

Pure, never raises, and evaluates nothing. All other scorers were read as well: each is
linear or close to it in at most 20,000 characters, so their tasks have no row.

Source: reasoning-gym 0.1.25, `score_answer` of every registered task.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping

from rg_env.task_rules.reading.literal_lists import why_not_list
from rg_env.task_rules.reading.sympy_expressions import (
    ExpressionBounds,
    why_not_expression,
)

Reader = Callable[[str, str | None], str | None]
"""(answer, gold answer or None) to the reason of a refusal, None if admitted."""


@dataclasses.dataclass(frozen=True)
class Guard:
    """What is known of one task's scorer.

    Attributes:
        task: The registered task.
        danger: What its scorer does with text.
        honest: What an honest answer holds.
        why_not: Reads an answer.
    """

    task: str
    danger: str
    honest: str
    why_not: Reader


def _list(plain: str) -> Reader:
    pattern = re.compile(plain)
    return lambda answer, gold: why_not_list(answer, pattern)


def _expression(bounds: ExpressionBounds) -> Reader:
    return lambda answer, gold: why_not_expression(answer, bounds)


_VARIABLES = frozenset("xyztuvwXYZ")
_CIRCULAR = frozenset({"sin", "cos", "tan", "cot", "sec", "csc"})
_HYPERBOLIC = frozenset({"sinh", "cosh", "tanh"})
FUNCTIONS = (
    frozenset({"exp", "log", "ln", "sqrt", "abs", "Abs"})
    | _CIRCULAR
    | _HYPERBOLIC
    | {f"a{name}" for name in _CIRCULAR | _HYPERBOLIC}
)
"""Elementary functions of one argument that an antiderivative may hold."""
_CONSTANTS = frozenset({"C", "c", "K", "k", "D"})
_INTEGRAL = ExpressionBounds(
    names=_VARIABLES | _CONSTANTS | {"e", "E", "pi"}, functions=FUNCTIONS, powers=True
)
_POLYNOMIAL = ExpressionBounds(
    names=frozenset("abcdefghijklmnopqrstuvwxyz") | _VARIABLES,
    powers=True,
    max_chars=8_000,
    max_digits=120,
    max_tokens=2_000,
    max_exponent=200,
    max_degree=400,
)

_EVALUATES = "calls eval on it"
_PARSES = "calls sympy's parse_expr on it, which is eval; computes constants exactly"

GUARDS: Mapping[str, Guard] = {
    guard.task: guard
    for guard in (
        Guard(
            "binary_matrix",
            _EVALUATES,
            "rows of numbers, plain or as lists; 20,000 characters at the top level",
            _list(r"[0-9\s]*"),
        ),
        Guard(
            "spiral_matrix",
            _EVALUATES,
            "numbers, plain, with commas or as a list",
            _list(r"[0-9\s]*"),
        ),
        Guard(
            "string_insertion",
            _EVALUATES,
            "capital letters, plain or as a list of characters",
            _list(r"[A-Z]*"),
        ),
        Guard(
            "simple_integration",
            _PARSES + "; simplifies",
            "elementary functions of x or X, and C; exponents to 10",
            _expression(_INTEGRAL),
        ),
        Guard(
            "intermediate_integration",
            _PARSES + "; simplifies",
            "elementary functions of x, and C; exponents to 5, up to 63 characters",
            _expression(_INTEGRAL),
        ),
        Guard(
            "polynomial_multiplication",
            _PARSES,
            "a polynomial; at high levels 6,174 characters, 83 digits, exponents to 99",
            _expression(_POLYNOMIAL),
        ),
        Guard(
            "composite",
            "those of the task that made the entry; see source_task",
            "those of the task that made the entry",
            lambda answer, gold: "an entry of a mixture is guarded by its own task",
        ),
    )
}
"""Task to its row."""
