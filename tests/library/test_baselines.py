"""Baselines, and the table of them that comes with the project."""

import json

from rg_env.library import registry
from rg_env.library.baselines import TABLE, guessing_notes
from rg_env.library.scales import curriculum_digest
from rg_env.library.scales import load_shipped as load_scales


def test_tasks_that_can_be_guessed_are_named():
    (note,) = guessing_notes({"syllogism", "products", "aiw", "mine"})
    assert note.startswith("scores say little in aiw, syllogism: ")
    assert guessing_notes({"products"}) == []


# -- the shipped table -----------------------------------------------------------------


def test_the_table_is_of_the_installed_library():
    shipped = json.loads(TABLE.read_text(encoding="utf-8"))
    assert registry.describe().version == shipped["library_version"]
    rows = shipped["tasks"].items()
    assert [t for t, r in rows if curriculum_digest(t) != r["digest"]] == []
    assert shipped["tasks"].keys() >= load_scales().scales.keys()
