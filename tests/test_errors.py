"""Errors: a sentence that names the field, what was found and what is nearest."""

import pytest

from rg_env.errors import LibraryError, SettingError, nearest, unknown_name

TASKS = ["lcm", "gcd", "number_sorting"]


def test_a_misspelled_name_meets_its_nearest():
    error = unknown_name("tasks", "number_sortign", TASKS, "task")
    assert str(error) == (
        "tasks: unknown task 'number_sortign'; did you mean 'number_sorting'?"
    )


def test_a_name_unlike_all_others_meets_the_list():
    error = unknown_name("tasks", "zzzzzz", TASKS, "task")
    assert str(error) == (
        "tasks: unknown task 'zzzzzz'; expected one of gcd, lcm, number_sorting"
    )


def test_a_long_list_is_cut_after_twelve():
    error = unknown_name("tasks", "zzz", [f"task_{i:02}" for i in range(13)], "task")
    assert str(error).endswith("task_10, task_11, ...")


def test_a_name_where_nothing_is_allowed_says_so():
    error = unknown_name("task_params.x", "size", [], "parameter")
    assert str(error) == "task_params.x: unknown parameter 'size'; there are none"


def test_no_name_is_near_when_none_is_alike():
    assert nearest("zzzzzz", TASKS) is None
    assert nearest("gdc", TASKS) == "gcd"


@pytest.mark.parametrize(
    ("error", "kind"), [(SettingError, ValueError), (LibraryError, RuntimeError)]
)
def test_callers_may_catch_the_built_in_kind(error, kind):
    assert issubclass(error, kind)
