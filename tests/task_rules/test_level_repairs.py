"""Repaired levels, scales that change nothing, and tasks without a scale."""

import pytest

from rg_env.library import scales
from rg_env.library.scales import load_shipped
from rg_env.task_rules.table import TABLE, no_scale_reason, solution
from tests.support.fixed_scores import run_score

SHIPPED = load_shipped()

REPAIRS = {
    task: rules.level_repair for task, rules in TABLE.items() if rules.level_repair
}

FIXED = {
    task: rules.fixed_level
    for task, rules in TABLE.items()
    if rules.fixed_level and task in SHIPPED.scales
}
"""Task to the reason why its scale changes nothing."""


def test_a_task_that_nobody_knows_has_no_scale_for_a_reason():
    assert "no curriculum" in no_scale_reason("of_a_later_version")


@pytest.mark.parametrize("task", FIXED)
def test_the_items_of_a_fixed_level_are_the_same_at_both_ends(make_asked_entry, task):
    scale = SHIPPED.scales[task]
    assert scale.is_constant
    assert FIXED[task] in scale.note
    for seed in range(3):
        low, high = (
            make_asked_entry(task, scale.steps[end].params, seed) for end in (0, -1)
        )
        assert low["question"] == high["question"]


@pytest.mark.parametrize("task", ["caesar_cipher", "knight_swap", "survo"])
def test_the_library_refuses_the_levels_that_are_repaired(task):
    plain = scales.curriculum_levels(task, repaired=False)
    refused = {number for number, (_, why) in enumerate(plain) if why is not None}
    assert refused == set(REPAIRS[task].overrides)


@pytest.mark.parametrize("task", REPAIRS)
def test_a_repaired_level_is_on_the_scale_and_its_gold_answers_are_right(
    make_asked_entry, task
):
    scale = SHIPPED.scales[task]
    assert REPAIRS[task].reason in scale.note
    assert not scale.skipped
    for step in scale.steps:
        if set(step.levels) & set(REPAIRS[task].overrides):
            entry = make_asked_entry(task, step.params, 5)
            if right := solution(task, entry):
                assert run_score(task, entry, right, step.params) == 1.0
