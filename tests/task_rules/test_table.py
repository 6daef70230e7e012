"""The rows of all tasks, and what is asked of them."""

from rg_env.task_rules import table
from rg_env.task_rules.rules import MIXTURE, TaskRules
from rg_env.task_rules.table import TABLE, fault_of, rules_of
from rg_env.tasks import library
from rg_env.tasks.library_import import load_factory

# -- rows ------------------------------------------------------------------------------


def test_a_row_is_that_of_a_registered_task_and_says_something():
    assert TABLE.keys() <= {*library.describe().tasks, MIXTURE}
    for task, rules in TABLE.items():
        assert rules.task == task and rules != TaskRules(task)


def test_a_module_lies_where_the_library_has_its_task():
    registered = load_factory().DATASETS
    for module in table._modules():
        theirs = registered[module.RULES.task][0].__module__.partition(".")[2]
        ours = module.__name__.removeprefix("rg_env.task_rules.")
        assert f"{theirs}.".startswith(f"{ours}.")  # gsm_symbolic is a folder there


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
