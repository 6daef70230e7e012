"""A scale, and the shipped scale of every task."""

import pytest

from rg_env.library import registry, worker_jobs
from rg_env.library.scales import (
    Scale,
    Step,
    curriculum_digest,
    curriculum_levels,
    load_shipped,
)
from rg_env.task_rules.rules import MIXTURE
from rg_env.task_rules.table import TABLE as RULES
from rg_env.task_rules.table import rules_of

GUARD_S = 120.0
SHIPPED = load_shipped()
LEVELS_OF_THE_LIBRARY = 556
STEPS = tuple(Step((n,), {"size_x": n}, 1.0) for n in range(3))
THREE_STEPS = Scale("some_task", STEPS)


# -- a scale ---------------------------------------------------------------------------


def test_between_two_steps_the_upper_one_comes_as_often_as_the_fraction_says():
    mixes = [n / 1000 for n in range(1000)]
    uppers = sum(THREE_STEPS.step_at(0.625, mix) is STEPS[2] for mix in mixes)
    lowers = sum(THREE_STEPS.step_at(0.625, mix) is STEPS[1] for mix in mixes)
    assert (uppers, lowers) == (250, 750)


@pytest.mark.parametrize("level", [-0.1, 1.1, float("nan")])
def test_a_level_outside_the_scale_is_refused(level):
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        THREE_STEPS.step_at(level, 0.0)


def test_a_scale_of_one_step_has_it_at_every_level_and_is_constant():
    scale = Scale("some_task", STEPS[:1])
    assert all(scale.step_at(n / 10, 0.5) is STEPS[0] for n in range(11))
    assert scale.is_constant and "level: one step is usable" in scale.note


# -- the shipped table -----------------------------------------------------------------


def test_every_task_has_a_scale_or_a_reason_for_none():
    tasks = {*registry.describe().tasks, MIXTURE}
    fixed = {task for task, rules in RULES.items() if rules.fixed_level}
    assert SHIPPED.scales.keys() | fixed == tasks
    assert all(
        SHIPPED.scales[task].is_constant for task in SHIPPED.scales.keys() & fixed
    )


def test_every_level_of_the_library_is_a_step_or_is_unused_by_the_rules_of_its_task():
    total = 0
    for task, scale in SHIPPED.scales.items():
        reasons = {skip.level: skip.reason for skip in scale.skipped}
        assert reasons == rules_of(task).unused_levels
        steps = {number: step.params for step in scale.steps for number in step.levels}
        levels = curriculum_levels(task)
        assert list(steps) == [n for n in range(len(levels)) if n not in reasons], task
        assert all(levels[n] == (params, None) for n, params in steps.items()), task
        total += len(levels)
    assert total == LEVELS_OF_THE_LIBRARY


def test_the_digest_of_a_task_changes_with_its_curriculum(monkeypatch):
    before = curriculum_digest("ab")
    curriculum = registry.load_factory().CURRICULA["ab"]

    class Longer(curriculum):
        def __init__(self):
            super().__init__()
            self.attributes["length"].levels = [10, 20, 30, 40]

    Longer.__module__ = curriculum.__module__
    monkeypatch.setitem(registry.load_factory().CURRICULA, "ab", Longer)
    assert curriculum_digest("ab") != before


# -- items over the scale --------------------------------------------------------------


@pytest.mark.processes
@pytest.mark.parametrize("task", ["codeio", "rearc", "spell_backward"])
def test_an_item_does_not_depend_on_the_level_of_the_previous_item_of_its_worker(
    other_pool, task
):
    steps = SHIPPED.scales[task].steps
    low, high, low_again = (
        other_pool.call(
            worker_jobs.make_entry, task, steps[n].params, 3, False, deadline_s=GUARD_S
        )
        for n in (0, -1, 0)
    )
    assert low_again == low
    assert low["question"] != high["question"]
