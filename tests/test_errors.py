"""Errors: a sentence with the field, the value and the nearest valid one."""

import pytest

from rg_env.errors import unknown_name

TASKS = ["lcm", "gcd", "number_sorting"]


@pytest.mark.parametrize(
    ("name", "allowed", "expected"),
    [
        ("number_sortign", TASKS, "did you mean 'number_sorting'?"),
        ("zzzzzz", TASKS, "expected one of gcd, lcm, number_sorting"),
        ("size", [], "there are none"),
    ],
)
def test_an_unknown_name_is_shown_with_the_nearest_or_all_valid_names(
    name, allowed, expected
):
    error = unknown_name("tasks", name, allowed, "task")
    assert str(error) == f"tasks: unknown task {name!r}; {expected}"
