"""An entry with a fault that is known is found, and the fault is named."""

from rg_env.task_rules.table import fault_of, rules_of


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
