"""Baselines, and the table of them that comes with the project."""

from __future__ import annotations

import pytest

from rg_env.tasks import library, library_levels
from rg_env.tasks.baselines import (
    HIGHEST,
    TABLE,
    WORTH_SHIPPING,
    Baseline,
    Baselines,
    TaskBaselines,
    guessing_notes,
    load_shipped,
)
from rg_env.tasks.scales import load_shipped as load_scales
from tools.make_baselines import table_text

SHIPPED = load_shipped()
AT_DEFAULTS = Baseline({}, 0.5, 0.04, 600, "always 'Yes'")
AT_A_STEP = Baseline({"size": [3, 4]}, 0.25, 0.03, 600, 'always "näher"')
ROW = TaskBaselines("f00", 1.5, (AT_DEFAULTS, AT_A_STEP))
TABLE_OF_ONE = Baselines("1.2.3", {"a": ROW})


@pytest.mark.parametrize(
    ("task", "params", "value"),
    [
        ("a", {}, 0.5),
        ("a", {"size": [3, 4]}, 0.25),
        ("a", {"size": [3, 5]}, 0.0),
        ("a", {"size": [3, 4], "depth": 1}, 0.0),
        ("b", {}, 0.0),
    ],
)
def test_an_item_has_the_baseline_of_its_parameters_and_others_have_none(
    task, params, value
):
    assert TABLE_OF_ONE.of(task, params) == value


def test_only_the_tasks_that_are_kept_have_baselines():
    assert TABLE_OF_ONE.of_tasks({"b"}).of("a", {}) == 0.0
    assert TABLE_OF_ONE.of_tasks({"a", "b"}) == TABLE_OF_ONE


def test_a_table_that_was_written_is_read_as_it_was(tmp_path):
    path = tmp_path / "baselines.json"
    path.write_text(table_text(TABLE_OF_ONE), encoding="utf-8")
    assert load_shipped(path) == TABLE_OF_ONE


def test_tasks_that_can_be_guessed_are_named():
    (note,) = guessing_notes({"syllogism", "products", "aiw", "mine"})
    assert note.startswith("scores say little in aiw, syllogism: ")
    assert guessing_notes({"products"}) == []


# -- the shipped table -----------------------------------------------------------------


def test_the_table_is_as_its_script_writes_it():
    assert table_text(SHIPPED) == TABLE.read_text(encoding="utf-8")


def test_the_table_is_of_the_installed_library():
    assert library.describe().version == SHIPPED.library_version
    rows = SHIPPED.by_task.items()
    assert [t for t, r in rows if library_levels.curriculum_digest(t) != r.digest] == []
    assert SHIPPED.by_task.keys() >= load_scales().scales.keys()


def test_every_baseline_is_of_the_defaults_or_of_a_step_of_the_shipped_scale():
    scales = load_scales().scales
    for task, row in SHIPPED.by_task.items():
        steps = scales[task].steps if task in scales else ()
        known = [{}, *(step.params for step in steps)]
        figures = row.baselines
        assert [b.params for b in figures if b.params not in known] == [], task


def test_no_two_baselines_of_a_task_are_of_the_same_parameters():
    for task, row in SHIPPED.by_task.items():
        params = [baseline.params for baseline in row.baselines]
        assert all(params.count(one) == 1 for one in params), task


def test_a_baseline_leaves_room_above_it():
    rows = SHIPPED.by_task.values()
    values = [baseline.value for row in rows for baseline in row.baselines]
    assert values
    assert WORTH_SHIPPING <= min(values) <= max(values) <= HIGHEST < 1.0
