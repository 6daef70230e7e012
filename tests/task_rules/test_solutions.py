"""A full-score answer to an entry, where the library gives one."""

import json

import pytest

from rg_env.task_rules.table import solution


def test_the_answer_of_an_entry_is_its_solution():
    assert solution("gcd", {"answer": "4", "metadata": {}}) == "4"


def test_an_answer_that_is_no_text_is_written_as_json():
    assert solution("gcd", {"answer": [1, 2], "metadata": {}}) == "[1, 2]"


@pytest.mark.parametrize(
    ("task", "name", "example"),
    [
        ("graph_color", "possible_answer", {"0": 1}),
        ("propositional_logic", "example_answer", "(P ∧ Q)"),
        ("rubiks_cube", "example_correct_answer", "R U"),
    ],
)
def test_a_task_with_many_answers_keeps_one_in_its_metadata(task, name, example):
    entry = {"answer": None, "metadata": {name: example}}
    expected = example if isinstance(example, str) else json.dumps(example)
    assert solution(task, entry) == expected


def test_a_cube_that_the_library_did_not_solve_is_undone_move_by_move():
    metadata = {"example_correct_answer": "", "scramble_moves": "R U'"}
    assert solution("rubiks_cube", {"answer": None, "metadata": metadata}) == "U R'"


def test_a_task_whose_entries_hold_no_answer_has_no_solution():
    assert solution("boxnet", {"answer": None, "metadata": {}}) is None
