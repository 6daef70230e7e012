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
from typing import Any

from rg_env.task_rules.reading.costly_json import why_not_compared, why_not_plan
from rg_env.task_rules.reading.literal_lists import why_not_list
from rg_env.task_rules.reading.propositional_formulas import why_not_proposition
from rg_env.task_rules.reading.repeated_moves import (
    why_not_car_moves,
    why_not_cube_moves,
)
from rg_env.task_rules.reading.sympy_expressions import (
    ExpressionBounds,
    why_not_expression,
)
from rg_env.task_rules.reading.written_exponents import why_not_number

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
# The scorers count the 2 and the 5 of 2.5 as two of the given numbers.
_ARITHMETIC = ExpressionBounds(decimals=False, max_digits=12)
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
            "n_queens",
            _EVALUATES,
            "rows of _ and Q, plain or as lists of strings",
            _list(r"[_Q.\s]*"),
        ),
        Guard(
            "countdown",
            _PARSES,
            "whole numbers, + - * / ( ); up to 84 characters and 15 numbers",
            _expression(_ARITHMETIC),
        ),
        Guard(
            "puzzle24",
            _PARSES,
            "four whole numbers, + - * / ( )",
            _expression(_ARITHMETIC),
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
            "coin_flip",
            "makes a Fraction of it, which computes 10**exponent",
            "a decimal such as 3.051757812e-05 or a fraction",
            lambda answer, gold: why_not_number(answer, max_exponent_digits=3),
        ),
        Guard(
            "propositional_logic",
            "2**n assignments of n names; recursive, quadratic parser",
            "one formula of the item's letters",
            lambda answer, gold: why_not_proposition(
                answer, max_chars=1_000, max_operators=100, max_depth=50
            ),
        ),
        Guard(
            "rubiks_cube",
            "R1000000 turns the cube a million times and lists the moves",
            "moves in words; the solver's own solutions have up to 200",
            lambda answer, gold: why_not_cube_moves(answer, max_turns=2_000),
        ),
        Guard(
            "rush_hour",
            "A+999999999 moves a car that often",
            "moves by at most 4",
            lambda answer, gold: why_not_car_moves(answer, max_steps=20_000),
        ),
        Guard(
            "codeio",
            "tree edit distance between two JSON values; recursive",
            "JSON; objects have up to 1,000 characters in 99 of 100 items",
            lambda answer, gold: why_not_compared(
                answer, gold, max_work=2_000_000, max_depth=8
            ),
        ),
        Guard(
            "boxnet",
            "an expression that is quadratic in a string of the plan",
            "JSON: move(box_blue, square[0.5, 1.5]) by agent",
            lambda answer, gold: why_not_plan(
                answer, safe_chars=2_000, max_string_chars=200
            ),
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

EVALUATED = tuple(
    task
    for task, guard in GUARDS.items()
    if guard.danger.startswith((_EVALUATES, _PARSES))
)
"""Tasks whose scorers run the text of an answer."""


def source_task(task: str, entry: Mapping[str, Any]) -> str:
    """Return the task whose guard and spelling the answers to an entry have.

    It is the entry's task, except in a mixture, whose entries name their source.
    """
    metadata = entry.get("metadata")
    if task == "composite" and isinstance(metadata, Mapping):
        return str(metadata.get("source_dataset", task))
    return task


def refusal(task: str, answer: str, gold: str | None = None) -> str | None:
    """Say why an answer must not reach the scorer of its task.

    Args:
        task: The registered task; for a mixture, the task that made the entry.
        answer: Any text; its length should be limited before.
        gold: The entry's gold answer where it has one. An answer equal to it is
            the library's own text and is admitted: one in ten golds of
            intermediate_integration holds an `Integral(...)`.

    Returns:
        The reason in a few words, or None where it is admitted.
    """
    guard = GUARDS.get(task)
    if guard is None or answer == gold:
        return None
    return guard.why_not(answer, gold)
