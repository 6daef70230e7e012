"""Trivial baselines: those of the installed library, and the tasks that they guess."""

import json

from rg_env.library import registry
from rg_env.library.scales import curriculum_digest, load_shipped
from rg_env.library.trivial_baselines import BASELINES, guessing_notes


def test_tasks_that_can_be_guessed_are_named():
    (note,) = guessing_notes({"syllogism", "products", "aiw", "mine"})
    assert note.startswith("scores say little in aiw, syllogism: ")
    assert guessing_notes({"products"}) == []


def test_the_baselines_are_those_of_the_installed_library():
    shipped = json.loads(BASELINES.read_text(encoding="utf-8"))
    assert registry.describe().version == shipped["library_version"]
    rows = shipped["tasks"].items()
    assert [t for t, r in rows if curriculum_digest(t) != r["digest"]] == []
    assert shipped["tasks"].keys() >= load_shipped().scales.keys()
