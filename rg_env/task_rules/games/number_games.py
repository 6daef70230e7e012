"""Rules of countdown and puzzle24: sums of given numbers.

The library builds and evaluates hundreds of sympy formulas to draw an item. Here its
own code draws with formulas that compute plain numbers, and sympy builds only the
formula that is written out.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from operator import add, mul, sub
from random import Random
from types import FunctionType
from typing import Any

from rg_env.task_rules.faster_functions import source_digest
from rg_env.task_rules.reading.expressions import ExpressionBounds, expression_guard
from rg_env.task_rules.reading.numbers import exact_value
from rg_env.task_rules.rules import (
    READABLE_SCORE,
    Entry,
    FasterFunction,
    LibraryScore,
    ScorerFix,
    TaskRules,
)

# No decimals: the scorers read 2.5 as the two numbers 2 and 5.
GUARD = expression_guard(ExpressionBounds(decimals=False, max_digits=12))

# The library's score of a wrong sum.
MAX_FOR_A_WRONG_SUM = 0.05

# The number of expressions that the library draws for countdown before it gives up.
MAX_TRIES = 100


def _score_sum(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score a sum that uses the entry's numbers, each once."""
    metadata = entry["metadata"]
    value = exact_value(answer)
    if value is None or "." in answer:
        return READABLE_SCORE
    numbers = sorted(map(int, re.findall("[0-9]+", answer)))
    is_right = value == metadata.get("target", 24)
    if is_right and numbers == sorted(metadata["numbers"]):
        return library(answer)
    return min(MAX_FOR_A_WRONG_SUM, library(answer))


def _divide(a: Any, b: Any) -> Any:
    return a // b if isinstance(a, int) else a / b  # the library draws only divisors


def _operator(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], _Formula]:
    return lambda a, b: _Formula(lambda values: compute(a.subs(values), b.subs(values)))


class _Formula:
    """A formula as the library uses it; `subs({})` returns the formula of sympy."""

    def __init__(self, subs: Callable[[Mapping[Any, int]], Any]) -> None:
        self.subs = subs

    def __str__(self) -> str:
        return str(self.subs({}))

    __add__ = _operator(add)
    __sub__ = _operator(sub)
    __mul__ = _operator(mul)
    __truediv__ = _operator(_divide)


@functools.cache
def _symbols(names: str) -> list[_Formula]:
    from sympy import symbols

    def as_formula(symbol: Any) -> _Formula:
        formula = _Formula(lambda values: values.get(formula, symbol))
        return formula

    return [as_formula(symbol) for symbol in symbols(names)]


def _with_globals(function: Any, **names: Any) -> Any:
    """Return a copy of a function that sees other values of global names."""
    names = function.__globals__ | names | {"__name__": __name__}
    return FunctionType(function.__code__, names)


def _make_generate_expression(original: Any) -> Any:
    draw = original.__globals__["CountdownDataset"]._generate_candidate_expression
    if source_digest(draw) != "e15d0363f37087c3":
        return original
    # The library writes out every expression that it draws.
    draw = _with_globals(draw, symbols=_symbols, str=lambda value: "")

    def generate(dataset: Any, rng: Random) -> tuple[str, list[int], int]:
        config = dataset.config
        count = rng.randint(config.min_numbers, config.max_numbers)
        for _ in range(MAX_TRIES):
            formula, numbers, symbols, _text = draw(dataset, rng, count)
            values = dict(zip(symbols, numbers, strict=True))
            target = formula.subs(values)
            if config.min_target <= target <= config.max_target:
                text = str(formula)
                # In reverse order, so that x_1 is not found in x_10.
                for symbol, number in reversed(values.items()):
                    text = text.replace(str(symbol), str(number))
                return text, numbers, target
        raise ValueError(f"{MAX_TRIES} expressions have values out of bounds")

    return generate


def _make_generate_candidate(original: Any) -> Any:
    getitem = original.__globals__["Puzzle24Dataset"].__getitem__
    # This version uses only the operations of `_Formula`.
    if source_digest(getitem) != "46c45afc635fb582":
        return original
    return _with_globals(original, symbols=_symbols)


COUNTDOWN = TaskRules(
    "countdown",
    guard=GUARD,
    fix=ScorerFix(
        _score_sum,
        "Also finds the numbers in a comment, in a decimal and behind a letter.",
    ),
    faster=(
        FasterFunction(
            module="reasoning_gym.games.countdown",
            name="CountdownDataset._generate_expression",
            digest="055d9935e2756578",
            make=_make_generate_expression,
        ),
    ),
)

PUZZLE24 = TaskRules(
    "puzzle24",
    guard=GUARD,
    fix=ScorerFix(
        _score_sum,
        "Does not compare the numbers used with those given; drops fractions.",
    ),
    faster=(
        FasterFunction(
            module="reasoning_gym.games.puzzle24",
            name="Puzzle24Dataset._generate_candidate_expression",
            digest="585d662564f5cdb9",
            make=_make_generate_candidate,
        ),
    ),
)
