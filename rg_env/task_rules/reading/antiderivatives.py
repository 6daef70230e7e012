"""Antiderivatives in simple_integration and intermediate_integration.

An answer may contain only elementary functions: no unevaluated integral, and no
function that makes the computer algebra system do the work.

The library simplifies the difference between the answer's derivative and the integrand,
and scores 1.0 if it is zero. That takes 64 ms on average for a wrong answer, and
seconds at worst; finding a point where both differ takes 2 ms. Only the answers without
such a point are scored by the library.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from rg_env.task_rules.reading.expressions import ExpressionBounds, expression_guard
from rg_env.task_rules.reading.numbers import short_answers_only
from rg_env.task_rules.rules import Entry, LibraryScore, ScorerFix, TaskRules

# Points at which slopes are compared: positive fractions, because the identities of
# logarithms and roots hold there.
POINTS = (Fraction(7, 5), Fraction(13, 6))

# Further points for slopes that the library cannot simplify.
MORE_POINTS = (Fraction(17, 3), Fraction(41, 9), Fraction(29, 4))

EXACT_DIGITS = 40
EXACT = 1e-30

DIGITS = 20
TOLERANCE = 1e-6

_CIRCULAR = frozenset({"sin", "cos", "tan", "cot", "sec", "csc"})
_HYPERBOLIC = frozenset({"sinh", "cosh", "tanh"})
FUNCTIONS = (
    frozenset({"exp", "log", "ln", "sqrt", "abs", "Abs"})
    | _CIRCULAR
    | _HYPERBOLIC
    | {f"a{name}" for name in _CIRCULAR | _HYPERBOLIC}
)
"""Elementary functions of one argument that an antiderivative may contain."""

_BOUNDS = ExpressionBounds(
    names=frozenset("xyztuvwXYZCcKkDeE") | {"pi"}, functions=FUNCTIONS, powers=True
)

ELEMENTARY = FUNCTIONS | {"C", "E", "pi"}
"""Names that an antiderivative may contain besides its variable."""

CONSTANTS = frozenset({"c", "k", "K", "D"})
"""Other names of the constant of integration; an answer has at most one."""

_NAME = re.compile(r"[^\W\d]\w*")
_EULER = re.compile(r"\be\b")
_LOG_OF_ABS = re.compile(
    r"\b(?:log|ln)\([Aa]bs\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)\)"
)
_EXPRESSION = re.compile(r"[\w\s+\-*/^().]*")


def _slope_and_integrand(
    answer: str, integrand: str, variable: str, *, exactly: bool
) -> tuple[Any, Any, Any]:
    """Return sympy's variable, the derivative of an answer and the integrand."""
    # This import takes half a second, and only a worker needs it.
    import sympy
    from sympy.parsing.sympy_parser import rationalize, standard_transformations

    symbol = sympy.Symbol(variable)
    names = {variable: symbol, "C": sympy.Symbol("C")}
    transformations = standard_transformations
    if exactly:
        transformations = (*transformations, rationalize)
    slope = sympy.diff(sympy.parse_expr(answer, names, transformations), symbol)
    return symbol, slope, sympy.parse_expr(integrand, local_dict={variable: symbol})


def _value_at(expression: Any, point: Mapping[Any, Any]) -> complex | None:
    """Return the value of an expression, None if it is not a finite number."""
    try:
        value = complex(expression.evalf(DIGITS, subs=point))
    except (TypeError, ValueError, ArithmeticError):
        return None
    return value if abs(value) < float("inf") else None


def has_wrong_slope(answer: str, integrand: str, variable: str) -> bool:
    """Return whether the derivative of an answer certainly differs from the integrand.

    The answer must be one that the guard admits.
    """
    try:
        symbol, slope, expected = _slope_and_integrand(
            answer, integrand, variable, exactly=False
        )
    except Exception:  # noqa: BLE001 - sympy may raise anything; the library decides
        return False
    for point in POINTS:
        found = _value_at(slope, {symbol: point})
        right = _value_at(expected, {symbol: point})
        if found is None or right is None:
            continue
        if abs(found - right) > TOLERANCE * (1 + abs(found) + abs(right)):
            return True
    return False


def has_right_slope(answer: str, integrand: str, variable: str) -> bool:
    """Return whether the derivative of an answer equals the integrand at all points.

    Decimals are exact: `1.5` is 3/2, and 1.6667 is not 5/3.
    """
    try:
        symbol, slope, expected = _slope_and_integrand(
            answer, integrand, variable, exactly=True
        )
        difference = slope - expected
        return all(
            abs(difference.evalf(EXACT_DIGITS, subs={symbol: point}))
            <= EXACT * (1 + abs(expected.evalf(subs={symbol: point})))
            for point in (*POINTS, *MORE_POINTS)
        )
    except Exception:  # noqa: BLE001 - sympy may raise anything; then it is unproven
        return False


def _score_antiderivative(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score an antiderivative in elementary functions.

    For the library, `e` is a name, and `log(abs(u))` has another slope than `log(u)`.
    """
    answer = _LOG_OF_ABS.sub(r"log(\1)", _EULER.sub("E", answer))
    integrand = entry["metadata"]["integrand"]
    variable = entry["metadata"]["variable"]
    names = set(_NAME.findall(answer)) - {variable} - ELEMENTARY
    is_one_constant = len(names) <= 1 and names <= CONSTANTS
    if not _EXPRESSION.fullmatch(answer) or not is_one_constant:
        return 0.0
    if has_wrong_slope(answer, integrand, variable):
        return 0.0
    value = library(answer)
    if value < 1.0 and has_right_slope(answer, integrand, variable):
        return 1.0  # sympy cannot simplify `cos(2*x)/4` for `-sin(x)**2/2`, or `x**1.5`
    return value


_NESTED = r"\((?:[^()]|\([^()]*\))*\)"
_RAISED_NAME = re.compile(
    rf"\b((?:sin|cos|tan|cot|sec|csc|sinh|cosh|tanh))\s?(?:\*\*|\^)\s?(\d)\s?({_NESTED})"
)
_LOG_OF_BARS = re.compile(r"\b(log|ln)\s?\|([^|]*)\|")
_LONG_NAMES = re.compile(r"\barc(?=(?:sin|cos|tan|cot|sec|csc)h?\()")


def _rename_variable(text: str, variable: str, question: str) -> str:
    """Write `x` for `X`, unless the question demands the same symbol."""
    other = variable.swapcase()
    names = set(_NAME.findall(text))
    if other not in names or variable in names or "ame variable symbol" in question:
        return text
    return re.sub(rf"\b{other}\b", variable, text)


@short_answers_only
def _as_antiderivative(answer: str, entry: Entry) -> str:
    """Write functions as sympy does: `sin(x)**2` for `sin**2(x)`."""
    variable = str(entry.get("metadata", {}).get("variable", "x"))
    text = _LONG_NAMES.sub("a", answer.replace("\u221a(", "sqrt("))
    text = _LOG_OF_BARS.sub(r"\1(abs(\2))", _RAISED_NAME.sub(r"\1\3**\2", text))
    return _rename_variable(text, variable, entry.get("question", ""))


def integration_rules(task: str) -> TaskRules:
    """Return the rules of a task with antiderivatives as answers."""
    return TaskRules(
        task,
        guard=expression_guard(_BOUNDS),
        notation=_as_antiderivative,
        fix=ScorerFix(
            _score_antiderivative,
            fault="`Integral(f, x)` and `integrate(f, x)` score 1.0 for every f.",
        ),
        # If sympy found no antiderivative, the library's answer repeats the question.
        solution=lambda entry: (
            None if "Integral" in entry["answer"] else entry["answer"]
        ),
    )
