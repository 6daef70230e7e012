"""The fix of the base scorer: which tasks have it, and what it leaves of the credit."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rg_env.task_rules.base_scorer import base_fix
from rg_env.task_rules.table import TABLE
from rg_env.tasks import datasets, library
from tests.support.fixed_scores import (
    BASE_TASKS,
    both_scores,
    entries,
    entry_of,
    fixed_score,
)

SECOND_ANSWERS: Mapping[str, str] = {
    **dict.fromkeys(BASE_TASKS, "1{gold}"),
    "acre": "un{gold}",
    "arc_1d": "{gold} 1",
    "bf": "{gold} no",
    "caesar_cipher": "IT {gold}",
    "course_schedule": "{gold} no",
    "isomorphic_strings": "True False",
    "list_functions": "{gold} [5]",
    "mahjong_puzzle": "{gold}Chi",
    "modulo_grid": "{gold}✅",
    "number_filtering": "{gold}7",
    "ransom_note": "True False",
    "rotate_matrix": "{gold}7",
    "string_manipulation": "{gold}a",
    "string_splitting": "{gold}7",
    "string_synthesis": "{gold}7",
    "syllogism": "YesNo",
    "word_sequence_reversal": "{gold}, the",
}
"""Task to a wrong answer that contains the right one, as a model could write it."""


WITHOUT_UNITS = {task for task, rules in TABLE.items() if not rules.has_units}


def test_the_base_scorer_is_that_of_the_listed_tasks_alone():
    tasks = library.describe().tasks
    assert list(BASE_TASKS) == [
        task for task in tasks if datasets.has_base_scorer(task)
    ]
    assert set(BASE_TASKS) >= WITHOUT_UNITS


@pytest.mark.parametrize("task", BASE_TASKS)
def test_a_wrong_answer_that_contains_the_right_one_is_not_paid(task):
    for entry in entries(task):
        answer = SECOND_ANSWERS[task].format(gold=entry["answer"])
        installed, fixed = both_scores(task, entry, answer)
        assert installed >= 0.4
        assert fixed == 0.0


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
