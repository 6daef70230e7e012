"""Antiderivatives, of simple_integration and intermediate_integration.

The scorer is given only what an answer by hand can contain: no unevaluated integral and
no function that makes the computer algebra system do the work.

The library simplifies the difference between the answer's derivative and the integrand,
and scores 1.0 if that is zero. Of wrong answers that takes 64 ms on average and seconds
at worst; to find a place where the two differ takes 2 ms. An answer for which none is
found is left to the library, so nobody scores for passing here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rg_env.task_rules.reading.expressions import ExpressionBounds, expression_guard
from rg_env.task_rules.reading.words import of_short_text
from rg_env.task_rules.rules import Entry, LibraryScore, ScorerFix, TaskRules

# Where slopes are compared. Fractions, positive: there the identities of logarithms and
# roots hold as well.
PLACES = ((7, 5), (13, 6))

# Where slopes are compared in addition that the library cannot simplify.
MORE_PLACES = ((17, 3), (41, 9), (29, 4))

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
"""Elementary functions of one argument that an antiderivative may hold."""

_BOUNDS = ExpressionBounds(
    names=frozenset("xyztuvwXYZCcKkDeE") | {"pi"}, functions=FUNCTIONS, powers=True
)

ELEMENTARY = FUNCTIONS | {"C", "E", "pi"}
"""Names an antiderivative may contain, besides its variable."""

CONSTANTS = frozenset({"c", "k", "K", "D"})
"""Other names of the constant of integration, of which an answer has one at most."""

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
    # Takes half a second, and only a worker ever needs it.
    import sympy
    from sympy.parsing.sympy_parser import rationalize, standard_transformations

    symbol = sympy.Symbol(variable)
    names = {variable: symbol, "C": sympy.Symbol("C")}
    reading = (*standard_transformations, rationalize)[: None if exactly else -1]
    slope = sympy.diff(sympy.parse_expr(answer, names, reading), symbol)
    return symbol, slope, sympy.parse_expr(integrand, local_dict={variable: symbol})


def _value_at(expression: Any, place: Mapping[Any, Any]) -> complex | None:
    """Return the value of an expression; None where it is no finite number."""
    try:
        value = complex(expression.evalf(DIGITS, subs=place))
    except (TypeError, ValueError, ArithmeticError):
        return None
    return value if abs(value) < float("inf") else None


def has_wrong_slope(answer: str, integrand: str, variable: str) -> bool:
    """Say whether the derivative of an answer is surely not the integrand.

    The answer is one that may be given to the library's parser.
    """
    from sympy import Rational

    try:
        symbol, *both = _slope_and_integrand(answer, integrand, variable, exactly=False)
    except Exception:  # noqa: BLE001 - any text may come; the library judges it
        return False
    for pair in PLACES:
        slope, right = (_value_at(side, {symbol: Rational(*pair)}) for side in both)
        if slope is None or right is None:
            continue
        if abs(slope - right) > TOLERANCE * (1 + abs(slope) + abs(right)):
            return True
    return False


def has_right_slope(answer: str, integrand: str, variable: str) -> bool:
    """Say whether the derivative of an answer is the integrand at some places.

    Decimals are taken as they are written: `1.5` is 3/2, and 1.6667 is no 5/3.
    """
    from sympy import Rational

    try:
        symbol, slope, wanted = _slope_and_integrand(
            answer, integrand, variable, exactly=True
        )
        off = slope - wanted
        for pair in (*PLACES, *MORE_PLACES):
            place = {symbol: Rational(*pair)}
            distance = abs(off.evalf(EXACT_DIGITS, subs=place))
            if not distance <= EXACT * (1 + abs(wanted.evalf(subs=place))):
                return False
    except Exception:  # noqa: BLE001 - any text may come; what cannot be told is wrong
        return False
    return True


def _score_antiderivative(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score an integration, written in elementary functions.

    The library takes `e` for a name, and does not see that `log(abs(u))` has the slope
    of `log(u)`.
    """
    answer = _LOG_OF_ABS.sub(r"log(\1)", _EULER.sub("E", answer))
    asked = entry["metadata"]["integrand"], entry["metadata"]["variable"]
    names = set(_NAME.findall(answer)) - {asked[1]} - ELEMENTARY
    is_one_constant = len(names) <= 1 and names <= CONSTANTS
    if not _EXPRESSION.fullmatch(answer) or not is_one_constant:
        return 0.0
    if has_wrong_slope(answer, *asked):
        return 0.0
    value = library(answer)
    # `cos(2*x)/4` for `-sin(x)**2/2` and `x**1.5` are more than it can simplify.
    return 1.0 if value < 1.0 and has_right_slope(answer, *asked) else value


_NESTED = r"\((?:[^()]|\([^()]*\))*\)"
_RAISED_NAME = re.compile(
    rf"\b((?:sin|cos|tan|cot|sec|csc|sinh|cosh|tanh))\s?(?:\*\*|\^)\s?(\d)\s?({_NESTED})"
)
_LOG_OF_BARS = re.compile(r"\b(log|ln)\s?\|([^|]*)\|")
_LONG_NAMES = re.compile(r"\barc(?=(?:sin|cos|tan|cot|sec|csc)h?\()")


def _in_the_questions_variable(text: str, variable: str, question: str) -> str:
    """Write `x` for `X`, as the question's own examples do, unless it minds."""
    other = variable.swapcase()
    names = set(_NAME.findall(text))
    if other not in names or variable in names or "ame variable symbol" in question:
        return text
    return re.sub(rf"\b{other}\b", variable, text)


@of_short_text
def _as_antiderivative(answer: str, entry: Entry) -> str:
    """Write functions as sympy does: `sin(x)**2` for `sin**2(x)`."""
    variable = str(entry.get("metadata", {}).get("variable", "x"))
    text = _LONG_NAMES.sub("a", answer.replace("\u221a(", "sqrt("))
    text = _LOG_OF_BARS.sub(r"\1(abs(\2))", _RAISED_NAME.sub(r"\1\3**\2", text))
    return _in_the_questions_variable(text, variable, entry.get("question", ""))


def integration_rules(task: str) -> TaskRules:
    """Return the rules of a task whose answers are antiderivatives."""
    return TaskRules(
        task,
        guard=expression_guard(_BOUNDS),
        notation=_as_antiderivative,
        fix=ScorerFix(
            _score_antiderivative,
            fault="`Integral(f, x)` and `integrate(f, x)` score 1.0 for every f.",
        ),
        # Where sympy found no antiderivative, the library's answer is the question.
        solution=lambda entry: (
            None if "Integral" in entry["answer"] else entry["answer"]
        ),
    )
