"""The table of the tasks' rules, and solutions."""

import pytest

from rg_env.library import registry
from rg_env.library.registry import load_factory
from rg_env.task_rules import table
from rg_env.task_rules.rules import MIXTURE, TaskRules
from rg_env.task_rules.table import TABLE, fault_of, rules_of, solution

# -- rows ------------------------------------------------------------------------------


def test_a_row_is_that_of_a_registered_task_and_says_something():
    assert TABLE.keys() <= {*registry.describe().tasks, MIXTURE}
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


# -- faulty entries --------------------------------------------------------------------

UNSOLVABLE = {"question": "", "answer": '["No solution"]', "metadata": {}}
UNSEEN = {"question": "[[0 0 ... 0]]", "answer": "True", "metadata": {}}


@pytest.mark.parametrize(
    ("task", "entry", "checked", "is_faulty"),
    [
        ("jugs", UNSOLVABLE, True, True),
        ("jugs", UNSOLVABLE, False, True),  # nobody can answer it
        ("game_of_life_halting", UNSEEN, True, True),
        ("game_of_life_halting", UNSEEN, False, False),
        ("syllogism", {"question": "", "answer": "", "metadata": {}}, True, False),
    ],
)
def test_an_entry_has_a_fault_of_its_task_or_none(task, entry, checked, is_faulty):
    fault = fault_of(task, entry, checked=checked)
    faults = [check.fault for check in rules_of(task).item_checks]
    assert (fault in faults) if is_faulty else fault is None


# -- solutions -------------------------------------------------------------------------


CUBE = {"example_correct_answer": "", "scramble_moves": "R U'"}


@pytest.mark.parametrize(
    ("task", "answer", "metadata", "right"),
    [
        ("gcd", "4", {}, "4"),
        ("gcd", [1, 2], {}, "[1, 2]"),
        ("graph_color", None, {"possible_answer": {"0": 1}}, '{"0": 1}'),
        ("propositional_logic", None, {"example_answer": "P"}, "P"),
        ("rubiks_cube", None, {"example_correct_answer": "R U"}, "R U"),
        ("rubiks_cube", None, CUBE, "U R'"),
        ("boxnet", None, {}, None),
    ],
)
def test_a_solution_is_the_answer_or_what_the_metadata_holds(
    task, answer, metadata, right
):
    assert solution(task, {"answer": answer, "metadata": metadata}) == right
