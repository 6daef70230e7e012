"""Baselines, and the table of them that comes with the project."""

from __future__ import annotations

from rg_env.tasks import library
from rg_env.tasks.baselines import (
    TABLE,
    Baseline,
    Baselines,
    TaskBaselines,
    guessing_notes,
    load_shipped,
)
from rg_env.tasks.scales import curriculum_digest
from rg_env.tasks.scales import load_shipped as load_scales
from tools.make_baselines import HIGHEST, WORTH_SHIPPING, table_text

SHIPPED = load_shipped()
AT_DEFAULTS = Baseline({}, 0.5, 0.04, 600, "always 'Yes'")
AT_A_STEP = Baseline({"size": [3, 4]}, 0.25, 0.03, 600, 'always "näher"')
ROW = TaskBaselines("f00", 1.5, (AT_DEFAULTS, AT_A_STEP))
TABLE_OF_ONE = Baselines("1.2.3", {"a": ROW})


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
    assert [t for t, r in rows if curriculum_digest(t) != r.digest] == []
    assert SHIPPED.by_task.keys() >= load_scales().scales.keys()


def test_every_baseline_is_of_the_defaults_or_of_a_step_and_leaves_room_above_it():
    scales = load_scales().scales
    for task, row in SHIPPED.by_task.items():
        steps = scales[task].steps if task in scales else ()
        known = [{}, *(step.params for step in steps)]
        params = [baseline.params for baseline in row.baselines]
        assert all(one in known and params.count(one) == 1 for one in params), task
        values = [baseline.value for baseline in row.baselines]
        assert all(WORTH_SHIPPING <= value <= HIGHEST < 1.0 for value in values)
