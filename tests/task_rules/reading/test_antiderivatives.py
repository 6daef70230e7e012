"""A wrong slope is found before the library simplifies anything."""

import re

import pytest

from rg_env.task_rules.reading.antiderivatives import has_wrong_slope
from tests.support.fixed_scores import entries, library_score

pytestmark = pytest.mark.slow


def answers_to_an_integral(entry):
    """Return right answers in other words, and wrong ones by a number or a sign."""
    gold = entry["answer"].removesuffix(" + C")
    numbers = list(re.finditer(r"\d+", gold))
    wrong = [
        gold[: found.start()] + str(int(found.group()) + 1) + gold[found.end() :]
        for found in numbers[:3]
    ]
    return [gold, f"{gold} + 7", f"C - (-1)*({gold})", f"-({gold})", *wrong]


@pytest.mark.parametrize("task", ["simple_integration", "intermediate_integration"])
def test_a_wrong_slope_is_found_where_the_library_scores_0_and_only_there(task):
    seen = []
    for entry in entries(task):
        metadata = entry["metadata"]
        installed = library_score(task, entry)
        for answer in answers_to_an_integral(entry):
            is_wrong = has_wrong_slope(
                answer, metadata["integrand"], metadata["variable"]
            )
            assert is_wrong == (installed(answer) == 0.0), answer
            seen.append(is_wrong)
    assert 0.3 < sum(seen) / len(seen) < 0.7


@pytest.mark.parametrize(
    ("answer", "integrand"),
    [
        ("log(x**2)/2", "1/x"),
        ("log(abs(x))", "1/x"),
        ("0.333333333333333333*x**3", "x**2"),
        ("acos(x)", "-1/sqrt(1 - x**2)"),
        ("C*x", "3"),
        ("x**(", "3"),
        ("x*10**400", "3*10**400"),
    ],
)
def test_an_answer_that_is_not_certainly_wrong_is_left_to_the_library(
    answer, integrand
):
    assert not has_wrong_slope(answer, integrand, "x")
