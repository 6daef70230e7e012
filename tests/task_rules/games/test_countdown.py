"""The value of an expression is that of its formula."""

import importlib
import random
from types import SimpleNamespace

import pytest

from rg_env.task_rules.games.countdown import Expression


@pytest.mark.parametrize("operators", [("+",), ("-", "/"), ("+", "-", "*", "/")])
@pytest.mark.parametrize("least", [-3, 0, 1])
def test_an_expression_has_the_value_of_its_formula(operators, least):
    sympy = importlib.import_module("sympy")
    config = SimpleNamespace(min_value=least, max_value=9, operators=operators)
    for seed in range(60):
        expression = Expression(random.Random(seed), config, 5)
        symbols = sympy.symbols("x:5")
        formula = expression.formula(symbols)
        values = dict(zip(symbols, expression.numbers, strict=True))
        assert formula.subs(values) == expression.value
