"""An entry with a fault that is known is found, and the fault is named."""

from rg_env.tasks.item_checks.check_table import CHECKS, fault_of


def test_a_faulty_entry_has_the_fault_of_its_task():
    entry = {"question": "", "answer": '["No solution"]', "metadata": {}}
    assert fault_of("jugs", entry) == CHECKS["jugs"][0].fault


def test_an_entry_without_a_fault_has_none():
    entry = {"question": "", "answer": '["fill A"]', "metadata": {}}
    assert fault_of("jugs", entry) is None


def test_a_task_without_checks_has_no_faulty_entry():
    assert fault_of("gcd", {}) is None
