"""countdown, puzzle24: expressions of numbers, drawn until one has a wanted value.

The library draws hundreds, and builds and evaluates each as a formula. Here numbers are
computed with, and the formula is built of what was drawn when the value is right.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from operator import add, floordiv, mul, sub, truediv
from random import Random
from typing import Any

MAX_TRIES = 100
"""Expressions of countdown that the library draws before it gives up."""

_OPERATIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": add,
    "-": sub,
    "*": mul,
    "/": truediv,
}


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
        left = [number for number in self.numbers[place:] if number != 0]
        rng.shuffle(left)
        for number in left:
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


class _Candidate:
    """A formula as puzzle24 uses it, built when it is written out."""

    def __init__(self, expression: Expression, symbols: Sequence[Any]) -> None:
        self._expression = expression
        self._symbols = symbols

    def subs(self, values: Mapping[Any, int]) -> int:
        return self._expression.value

    def __str__(self) -> str:
        return str(self._expression.formula(self._symbols))


def make_generate_candidate_expression(own: Any) -> Callable[..., tuple[Any, ...]]:
    """Return puzzle24's `_generate_candidate_expression`."""
    symbols = _symbols("x:{}")

    def generate(dataset: Any, rng: Random, num_terms: int) -> tuple[Any, ...]:
        expression = Expression(rng, dataset.config, num_terms)
        named = symbols(num_terms)
        return _Candidate(expression, named), expression.numbers, named

    return generate


def make_generate_expression(own: Any) -> Callable[..., tuple[str, list[int], int]]:
    """Return countdown's `_generate_expression`."""
    symbols = _symbols("x_0:{}")

    def generate(dataset: Any, rng: Random) -> tuple[str, list[int], int]:
        config = dataset.config
        count = rng.randint(config.min_numbers, config.max_numbers)
        for _ in range(MAX_TRIES):
            expression = Expression(rng, config, count)
            if config.min_target <= expression.value <= config.max_target:
                named, numbers = symbols(count), expression.numbers
                text = str(expression.formula(named))
                # From the last on, so that x_1 is not found in x_10.
                for symbol, number in reversed(list(zip(named, numbers, strict=True))):
                    text = text.replace(str(symbol), str(number))
                return text, numbers, expression.value
        raise ValueError(f"{MAX_TRIES} expressions have values out of bounds")

    return generate


def _symbols(names: str) -> Callable[[int], Sequence[Any]]:
    sympy = importlib.import_module("sympy")
    return lambda count: sympy.symbols(names.format(count))
