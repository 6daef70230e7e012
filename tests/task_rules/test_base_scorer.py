"""The fix of the base scorer: which tasks have it, and what it leaves of the credit."""

from __future__ import annotations

import pytest

from rg_env.library import datasets, registry
from rg_env.task_rules.reading.filler_words import base_fix
from rg_env.task_rules.table import TABLE
from tests.support.fixed_scores import BASE_TASKS, both_scores, entry_of, fixed_score

WITHOUT_UNITS = {task for task, rules in TABLE.items() if not rules.has_units}


def test_the_base_scorer_is_that_of_the_listed_tasks_alone():
    tasks = registry.describe().tasks
    assert list(BASE_TASKS) == [
        task for task in tasks if datasets.has_base_scorer(task)
    ]
    assert set(BASE_TASKS) >= WITHOUT_UNITS


@pytest.mark.parametrize("task", ["gcd", "isomorphic_strings", "arc_1d", "chain_sum"])
def test_a_wrapper_keeps_the_credit_of_the_library(task):
    entry = entry_of(task, 7000)
    answer = f"The answer is {entry['answer']}"
    installed, fixed = both_scores(task, entry, answer)
    assert 0.0 < installed == fixed < 1.0


def test_a_unit_behind_a_number_keeps_the_credit_and_one_behind_a_list_does_not():
    entry = entry_of("maze", 7000)
    installed, fixed = both_scores("maze", entry, f"{entry['answer']} steps")
    assert 0.0 < installed == fixed < 1.0
    for task in WITHOUT_UNITS:
        entry = entry_of(task, 7000)
        assert fixed_score(task, entry, f"{entry['answer']} steps") == 0.0


def test_a_task_that_nobody_knows_has_the_fix_as_well():
    fix = base_fix()
    entry = {"answer": "5"}
    assert fix.score("The answer is 5", entry, lambda answer: 0.06) == 0.06
    assert fix.score("57", entry, lambda answer: 0.5) == 0.0
