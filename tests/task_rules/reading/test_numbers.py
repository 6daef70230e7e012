"""Numbers and calculations as they are written."""

import pytest

from rg_env.task_rules.reading.numbers import as_number


@pytest.mark.parametrize(
    ("text", "number"),
    [("4 + 1 = 5", "5"), ("10/2 = 2.5*2 = 5.0", "5.0"), ("4.99999999999999999", "5")],
)
def test_the_last_of_equal_sides_is_the_number(text, number):
    assert as_number(text, {"question": "What is it?"}) == number


@pytest.mark.parametrize(
    "text", ["4 + 1 = 6", "4 = 5", "x = 5", "5 =", "= 5", "9**9**9 = 5", "1/0 = 5"]
)
def test_a_side_that_is_not_equal_says_something_else(text):
    assert as_number(text, {"question": "What is it?"}) == text
