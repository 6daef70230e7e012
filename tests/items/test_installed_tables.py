"""The shipped scales and baselines hold for tasks that are as the tables were made."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from rg_env.items.installed_library import prepare_baselines, read_scales
from rg_env.tasks import baselines as shipped_baselines
from rg_env.tasks import library_levels
from rg_env.tasks import scales as shipped_scales
from rg_env.tasks.baselines import Baseline, Baselines, TaskBaselines
from rg_env.tasks.scales import ShippedScales, load_shipped
from rg_env.tasks.selection import TaskChoice

pytestmark = pytest.mark.processes

SCALES = load_shipped()
GCD = (Baseline({}, 0.5, 0.0, 600, "always '1'"),)
TABLE = Baselines(
    "0.0.1",
    {
        task: TaskBaselines(library_levels.curriculum_digest(task), 0.0, baselines)
        for task, baselines in (("gcd", GCD), ("acre", ()), ("lcm", ()))
    },
)


def read(pool, table, *tasks):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shipped_scales, "load_shipped", lambda: table)
        return asyncio.run(read_scales(pool, tasks))


def test_the_shipped_scales_hold_for_the_library_they_were_made_from(pool, logged):
    assert read(pool, SCALES, *SCALES.scales) == (SCALES.scales, {})
    assert logged.text == ""


def test_a_task_without_a_curriculum_has_no_scale_and_nothing_is_said(pool, logged):
    scales, reasons = read(pool, SCALES, "acre", "gcd")
    assert list(scales) == ["gcd"]
    assert list(reasons) == ["acre"]
    assert logged.text == ""


def test_tasks_that_have_changed_keep_the_librarys_defaults_and_are_named_in_one_line(
    pool, logged
):
    digests = {**SCALES.digests, "chain_sum": "of another version"}
    del digests["lcm"]  # as of a task that the table does not know
    table = ShippedScales("0.0.1", SCALES.scales, digests)
    scales, reasons = read(pool, table, "chain_sum", "gcd", "lcm")
    assert scales == {"gcd": SCALES.scales["gcd"]}
    assert reasons["lcm"] == "its curriculum is not that of reasoning-gym 0.0.1"
    (record,) = logged.records
    assert record.getMessage() == (
        "the curricula of 2 tasks are not those of reasoning-gym 0.0.1; these keep the"
        " library's default parameters: chain_sum, lcm"
    )


def prepare(pool, table, *choices):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shipped_baselines, "load_shipped", lambda: table)
        return asyncio.run(prepare_baselines(pool, choices))


def test_a_task_that_was_measured_keeps_its_baselines_and_nothing_is_said(pool, logged):
    found = prepare(pool, TABLE, TaskChoice("gcd"), TaskChoice("acre"))
    assert found.of("gcd", {}) == 0.5
    assert logged.text == ""


def test_a_task_that_has_changed_has_none_and_is_named(pool, logged):
    changed = {"gcd": TaskBaselines("other", 0.0, GCD)}
    table = dataclasses.replace(TABLE, by_task={**TABLE.by_task, **changed})
    found = prepare(pool, table, TaskChoice("gcd"), TaskChoice("lcm"))
    assert found.of("gcd", {}) == 0.0
    assert "the baseline of 1 tasks is 0, because the installed" in logged.text
    assert logged.messages[0].endswith(f" {TABLE.library_version}: gcd")


def test_parameters_of_ones_own_have_none_and_are_named_once(pool, logged):
    own = TaskChoice("gcd", params={"min_numbers": 3, "max_numbers": 3})
    found = prepare(pool, TABLE, own, TaskChoice("gcd"))
    assert found.of("gcd", own.params) == 0.0
    assert found.of("gcd", {}) == 0.5
    assert "parameters of your own, and it is 0 for: gcd" in logged.text
    assert len(logged.records) == 1
