"""Errors: a sentence that names the field, what was found and what is nearest."""

from rg_env.errors import unknown_name

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


def test_a_name_where_nothing_is_allowed_says_so():
    error = unknown_name("task_params.x", "size", [], "parameter")
    assert str(error) == "task_params.x: unknown parameter 'size'; there are none"
