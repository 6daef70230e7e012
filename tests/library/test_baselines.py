"""Baselines, and the table of them that comes with the project."""

from __future__ import annotations

from rg_env.library import registry
from rg_env.library.baselines import (
    Baseline,
    Baselines,
    TaskBaselines,
    guessing_notes,
    load_shipped,
)
from rg_env.library.scales import curriculum_digest
from rg_env.library.scales import load_shipped as load_scales

SHIPPED = load_shipped()
AT_DEFAULTS = Baseline({}, 0.5, 0.04, 600, "always 'Yes'")
AT_A_STEP = Baseline({"size": [3, 4]}, 0.25, 0.03, 600, 'always "näher"')
ROW = TaskBaselines("f00", 1.5, (AT_DEFAULTS, AT_A_STEP))
TABLE_OF_ONE = Baselines("1.2.3", {"a": ROW})


def test_tasks_that_can_be_guessed_are_named():
    (note,) = guessing_notes({"syllogism", "products", "aiw", "mine"})
    assert note.startswith("scores say little in aiw, syllogism: ")
    assert guessing_notes({"products"}) == []


# -- the shipped table -----------------------------------------------------------------


def test_the_table_is_of_the_installed_library():
    assert registry.describe().version == SHIPPED.library_version
    rows = SHIPPED.by_task.items()
    assert [t for t, r in rows if curriculum_digest(t) != r.digest] == []
    assert SHIPPED.by_task.keys() >= load_scales().scales.keys()
