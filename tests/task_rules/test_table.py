"""What the table of the tasks' rules holds, solutions, and what a share is worth."""

from __future__ import annotations

import json

import pytest

from rg_env.task_rules import table
from rg_env.task_rules.partial_credit import partial_credit
from rg_env.task_rules.rules import MIXTURE, TaskRules
from rg_env.task_rules.table import TABLE, fault_of, rules_of, solution
from rg_env.tasks import library
from rg_env.tasks.library import load_factory

# -- rows ------------------------------------------------------------------------------


def test_a_row_is_that_of_a_registered_task_and_says_something():
    assert TABLE.keys() <= {*library.describe().tasks, MIXTURE}
    for task, rules in TABLE.items():
        assert rules.task == task and rules != TaskRules(task)


def test_a_row_stands_in_a_module_of_its_task_s_category():
    registered = load_factory().DATASETS
    for module in table._modules():
        rows = [v for v in vars(module).values() if isinstance(v, TaskRules)]
        assert rows, module
        ours = module.__name__.removeprefix("rg_env.task_rules.").split(".")[0]
        theirs = {registered[row.task][0].__module__.split(".")[1] for row in rows}
        assert theirs == {ours}


def test_a_task_that_nothing_is_known_of_has_empty_rules():
    assert rules_of("of_a_later_version") == TaskRules("")


# -- faulty entries --------------------------------------------------------------------


def test_a_faulty_entry_has_the_fault_of_its_task():
    entry = {"question": "", "answer": '["No solution"]', "metadata": {}}
    assert fault_of("jugs", entry) == rules_of("jugs").item_checks[0].fault


def test_an_entry_without_a_fault_has_none():
    entry = {"question": "", "answer": '["fill A"]', "metadata": {}}
    assert fault_of("jugs", entry) is None


def test_a_task_without_checks_has_no_faulty_entry():
    assert fault_of("lcm", {}) is None


def test_without_the_checks_only_what_nobody_can_answer_is_a_fault():
    unsolvable = {"question": "", "answer": '["No solution"]', "metadata": {}}
    unseen = {"question": "[[0 0 ... 0]]", "answer": "True", "metadata": {}}
    assert fault_of("jugs", unsolvable, checked=False)
    assert fault_of("game_of_life_halting", unseen)
    assert fault_of("game_of_life_halting", unseen, checked=False) is None


def test_an_entry_of_another_form_has_no_fault_that_could_be_shown():
    assert fault_of("syllogism", {"question": "", "answer": "", "metadata": {}}) is None


# -- solutions -------------------------------------------------------------------------


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


# -- partial_credit --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("share", "without_solving", "score"),
    [
        *((1.0, 0.0, 0.5), (0.5, 0.0, 0.25), (0.0, 0.0, 0.0)),
        *((0.5, 0.5, 0.0), (0.75, 0.5, 0.25), (0.25, 0.5, 0.0), (1.0, 0.5, 0.5)),
        *((1.0, 1.0, 0.0), (1.5, 0.5, 0.5)),
    ],
)
def test_a_wrong_answer_is_paid_by_what_is_right_beyond_guessing(
    share, without_solving, score
):
    assert partial_credit(share, without_solving) == score
