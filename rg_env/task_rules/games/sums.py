"""Rules of countdown and puzzle24."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from operator import add, floordiv, mul, sub, truediv
from random import Random
from typing import Any

from rg_env.task_rules.reading.expressions import expression_guard
from rg_env.task_rules.reading.sums import SUM_BOUNDS, as_sum, score_sum
from rg_env.task_rules.rules import (
    FasterFunction,
    ScorerFix,
    TaskRules,
)

# -- countdown -------------------------------------------------------------------------

# countdown: sums of given numbers; puzzle24 has most of its rules as well.
#
# To draw an item the library makes hundreds of expressions, and builds and evaluates
# each as a formula. Here numbers are computed with, and the formula is built of what
# was drawn when the value is right.


MAX_TRIES = 100
"""Expressions of countdown that the library draws before it gives up."""

_OPERATIONS: Mapping[str, Callable[[Any, Any], Any]]
_OPERATIONS = {"+": add, "-": sub, "*": mul, "/": truediv}


class Expression:
    """Numbers and what is done to them from left to right.

    Attributes:
        numbers: Shape (N,); some were replaced by divisors.
        operations: Keys of `_OPERATIONS`, shape (N - 1,).
        value: The result, a whole number.
    """

    def __init__(self, rng: Random, config: Any, count: int) -> None:
        """Draw as the library draws."""
        self.numbers = [
            rng.randint(config.min_value, config.max_value) for _ in range(count)
        ]
        self.operations: list[str] = []
        self.value = self.numbers[0]
        for place in range(1, count):
            operation = rng.choice(config.operators)
            if operation not in ("+", "-", "*"):
                operation = self._divided(rng, place)
            work = floordiv if operation == "/" else _OPERATIONS[operation]
            self.value = work(self.value, self.numbers[place])
            self.operations.append(operation)

    def _divided(self, rng: Random, place: int) -> str:
        """Put a divisor in its place, if one of the numbers left is one."""
        if self.numbers[place] == 0:
            return "+"
        others = [number for number in self.numbers[place:] if number != 0]
        rng.shuffle(others)
        for number in others:
            if self.value % number == 0:
                self.numbers[place] = number
                return "/"
        return "-"

    def formula(self, symbols: Sequence[Any]) -> Any:
        """Return it as a formula of one symbol for each number."""
        formula = symbols[0]
        for operation, symbol in zip(self.operations, symbols[1:], strict=True):
            formula = _OPERATIONS[operation](formula, symbol)
        return formula


def symbols(pattern: str, count: int) -> Any:
    """Return so many symbols of sympy's with names in a pattern."""
    return importlib.import_module("sympy").symbols(pattern.format(count))


def _generate_expression(dataset: Any, rng: Random) -> tuple[str, list[int], int]:
    config = dataset.config
    count = rng.randint(config.min_numbers, config.max_numbers)
    for _ in range(MAX_TRIES):
        expression = Expression(rng, config, count)
        if config.min_target <= expression.value <= config.max_target:
            named, numbers = symbols("x_0:{}", count), expression.numbers
            text = str(expression.formula(named))
            # From the last on, so that x_1 is not found in x_10.
            for symbol, number in reversed(list(zip(named, numbers, strict=True))):
                text = text.replace(str(symbol), str(number))
            return text, numbers, expression.value
    raise ValueError(f"{MAX_TRIES} expressions have values out of bounds")


_LIBRARY = "reasoning_gym.games.countdown"
_DRAW = f"{_LIBRARY}:CountdownDataset._generate_candidate_expression"
COUNTDOWN = TaskRules(
    "countdown",
    guard=expression_guard(
        SUM_BOUNDS, "whole numbers, + - * / ( ); up to 84 characters and 15 numbers"
    ),
    notation=as_sum,
    fix=ScorerFix(
        scorer_sha256="5af9a9d9c2e1db114541552e6804dbc456adb86e6db75c85ec1ef92ad322ac5e",
        fault="Also finds the numbers in a comment, in a decimal and behind a letter.",
        score=score_sum,
    ),
    faster=(
        FasterFunction(
            _LIBRARY,
            "CountdownDataset._generate_expression",
            "055d9935e2756578",
            lambda own: _generate_expression,
            {_DRAW: "e15d0363f37087c3"},
        ),
    ),
)


# -- puzzle24 --------------------------------------------------------------------------


class _Candidate:
    """A formula as puzzle24 uses it, built when it is written out."""

    def __init__(self, expression: Expression, symbols: Sequence[Any]) -> None:
        self._expression = expression
        self._symbols = symbols

    def subs(self, values: Mapping[Any, int]) -> int:
        return self._expression.value

    def __str__(self) -> str:
        return str(self._expression.formula(self._symbols))


def _generate_candidate(dataset: Any, rng: Random, count: int) -> tuple[Any, ...]:
    expression = Expression(rng, dataset.config, count)
    named = symbols("x:{}", count)
    return _Candidate(expression, named), expression.numbers, named


_PUZZLE24 = "reasoning_gym.games.puzzle24"
PUZZLE24 = TaskRules(
    "puzzle24",
    guard=expression_guard(SUM_BOUNDS, "four whole numbers, + - * / ( )"),
    notation=as_sum,
    fix=ScorerFix(
        scorer_sha256="85c06b47c043171afbd9470630dd601aedd90a5e0807ad4e74da1ad7b20c59d3",
        fault="Does not compare the numbers used with those given; drops fractions.",
        score=score_sum,
    ),
    faster=(
        FasterFunction(
            _PUZZLE24,
            "Puzzle24Dataset._generate_candidate_expression",
            "585d662564f5cdb9",
            lambda own: _generate_candidate,
            {f"{_PUZZLE24}:Puzzle24Dataset.__getitem__": "46c45afc635fb582"},
        ),
    ),
)
