"""Strategies that features of a question choose."""

import random

import pytest

from tools.trivial_baselines.forest import Forest


def known(question, right):
    return question, {name: float(name == right) for name in ("yes", "no")}


SIGNS = [f"Is it: {'ab' * n}{'c' * (n % 3)}" for n in range(2, 62)]
LINES = [f"{n} is {('red', 'blue')[n % 2]}\nWhich?\n{n}" for n in range(60)]
STEPS = [f"{n}, {n + 3}, {n + 6 + n % 2}, ?" for n in range(60)]


@pytest.mark.parametrize(
    ("questions", "is_yes"),
    [
        (SIGNS, lambda question: question.endswith("c")),
        (LINES, lambda question: " red" in question),
        (STEPS, lambda question: int(question.split(",")[0]) % 2 == 0),
    ],
    ids=["signs", "the earlier line", "steps"],
)
def test_the_strategy_that_a_feature_speaks_for_is_chosen(questions, is_yes):
    mixed = random.Random(1).sample(questions, len(questions))
    right = ["yes" if is_yes(question) else "no" for question in mixed]
    forest = Forest([known(*pair) for pair in zip(mixed[:40], right, strict=False)])
    said = {"yes": "yes", "no": "no"}
    chosen = [forest.choose(question, said) for question in mixed[40:]]
    assert sum(a == b for a, b in zip(chosen, right[40:], strict=True)) >= 16
