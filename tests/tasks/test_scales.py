"""A scale, and the scale of every task in the table that comes with the project."""

from __future__ import annotations

import itertools

import pytest

from rg_env.items import worker_jobs
from rg_env.task_rules.rules import MIXTURE
from rg_env.task_rules.table import TABLE as RULES
from rg_env.task_rules.table import rules_of
from rg_env.tasks import library
from rg_env.tasks.scales import (
    TABLE,
    Scale,
    ShippedScales,
    SkippedLevel,
    Step,
    curriculum_digest,
    curriculum_levels,
    load_shipped,
)
from tools.make_scales import table_text

GUARD_S = 120.0
FAST_MS = 60.0
SEEDS = range(8)
"""The level shows in the first of them, but for tasks in which it moves a chance."""

SHIPPED = load_shipped()
LEVELS_OF_THE_LIBRARY = 556
STEPS = tuple(Step((n,), {"size_x": n}, 1.0) for n in range(3))
THREE_STEPS = Scale("some_task", STEPS)
FAST_TASKS = [  # more than 80
    task
    for task, scale in SHIPPED.scales.items()
    if not scale.is_dead and scale.steps[0].item_ms + scale.steps[-1].item_ms < FAST_MS
]


# -- a scale ---------------------------------------------------------------------------


def test_between_two_steps_the_upper_one_comes_as_often_as_the_fraction_says():
    mixes = [n / 1000 for n in range(1000)]
    uppers = sum(THREE_STEPS.step_at(0.625, mix) is STEPS[2] for mix in mixes)
    lowers = sum(THREE_STEPS.step_at(0.625, mix) is STEPS[1] for mix in mixes)
    assert (uppers, lowers) == (250, 750)


@pytest.mark.parametrize("level", [-0.1, 1.1, float("nan")])
def test_a_level_off_the_scale_is_refused(level):
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        THREE_STEPS.step_at(level, 0.0)


def test_a_scale_of_one_step_gives_it_at_every_level_and_is_dead():
    scale = Scale("some_task", STEPS[:1])
    assert all(scale.step_at(n / 10, 0.5) is STEPS[0] for n in range(11))
    assert scale.is_dead and "level: one step is usable" in scale.note


def test_a_step_stands_where_its_level_gives_it_whatever_the_mix():
    for number, step in enumerate(STEPS):
        for mix in (0.0, 0.999):
            assert THREE_STEPS.step_at(THREE_STEPS.level_of(number), mix) is step


# -- the shipped table -----------------------------------------------------------------


def test_a_table_that_was_written_is_read_as_it_was(tmp_path):
    skipped = (SkippedLevel(3, 'it "hangs"'),)
    scale = Scale("a", STEPS, skipped, "f00")
    table = ShippedScales("1.2.3", {"a": scale})
    path = tmp_path / "scales.json"
    path.write_text(table_text(table), encoding="utf-8")
    assert load_shipped(path) == table


def test_the_table_is_as_its_script_writes_it():
    assert table_text(SHIPPED) == TABLE.read_text(encoding="utf-8")


def test_every_task_has_a_scale_or_a_reason_why_not():
    tasks = {*library.describe().tasks, MIXTURE}
    fixed = {task for task, rules in RULES.items() if rules.fixed_level}
    assert SHIPPED.scales.keys() | fixed == tasks
    assert all(SHIPPED.scales[task].is_dead for task in SHIPPED.scales.keys() & fixed)


def test_every_level_of_the_library_is_a_step_or_is_left_out_by_the_row_of_its_task():
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
    curriculum = library.load_factory().CURRICULA["ab"]

    class Longer(curriculum):
        def __init__(self):
            super().__init__()
            self.attributes["length"].levels = [10, 20, 30, 40]

    Longer.__module__ = curriculum.__module__
    monkeypatch.setitem(library.load_factory().CURRICULA, "ab", Longer)
    assert curriculum_digest("ab") != before


@pytest.mark.parametrize("scale", SHIPPED.scales.values(), ids=lambda s: s.task)
def test_neighbouring_steps_differ_and_the_default_lies_where_nothing_is_set(scale):
    for lower, upper in itertools.pairwise(scale.steps):
        assert lower.params != upper.params
    if scale.default_level is None:
        assert all(step.params for step in scale.steps)
        assert "the default config is no point of the curriculum" in scale.note
    else:
        assert not scale.step_at(scale.default_level, 0.999).params


def test_the_table_is_of_the_installed_library(pool):
    assert library.describe().version == SHIPPED.library_version
    job = worker_jobs.curriculum_digests
    digests = pool.call(job, [*SHIPPED.scales], deadline_s=GUARD_S)
    assert digests == {task: scale.digest for task, scale in SHIPPED.scales.items()}


# -- items over the scale --------------------------------------------------------------


@pytest.mark.parametrize("task", FAST_TASKS)
def test_the_hardest_item_is_not_the_easiest(make_asked_entry, task):
    low, high = (SHIPPED.scales[task].steps[end].params for end in (0, -1))
    assert any(
        make_asked_entry(task, low, seed)["question"]
        != make_asked_entry(task, high, seed)["question"]
        for seed in SEEDS
    )


@pytest.mark.processes
@pytest.mark.parametrize("task", ["codeio", "rearc", "spell_backward"])
def test_an_item_does_not_depend_on_the_level_its_worker_made_before(other_pool, task):
    steps = SHIPPED.scales[task].steps
    low, high, low_again = (
        other_pool.call(
            worker_jobs.make_entry, task, steps[n].params, 3, False, deadline_s=GUARD_S
        )
        for n in (0, -1, 0)
    )
    assert low_again == low
    assert low["question"] != high["question"]
