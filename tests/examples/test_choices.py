"""The study of choice, where torch is installed."""

from collections import Counter
from itertools import islice

import pytest

from examples.studies import cells

pytest.importorskip("torch")
choices = pytest.importorskip("examples.studies.choices")


def test_an_arm_and_a_task_that_do_not_go_together_have_no_cell(tmp_path, monkeypatch):
    monkeypatch.setattr(cells, "FOLDER", tmp_path)
    ran = []

    def run(*cell):
        ran.append(cell[:3])
        return {"true": 0.5}

    alone = [("library", "tasks")]
    arms, tasks = ("ours", "library"), ("levels", "tasks")
    study = cells.Cells("study", arms, tasks, (0,), ("true",), run, alone)
    for cell in study.pending():
        study.one(cell)
    assert ran == [
        ("ours", "levels", 0),
        ("ours", "tasks", 0),
        ("library", "levels", 0),
    ]
    assert not study.pending() and len(study.table().splitlines()) == 5


@pytest.mark.processes
@pytest.mark.parametrize("name", choices.SETTINGS)
def test_a_rule_is_asked_for_a_place_and_told_the_values_of_its_group(name):
    setting = choices.SETTINGS[name]
    items, feedback = choices.chosen("pools", setting, 0)
    for item in islice(items, 120):
        feedback(item, [1.0, None])
        feedback(item, [None] * 2)
        assert (item.task, item.level) in setting.places
    drawn = Counter((item.task, item.level) for item in islice(items, 120))
    # All places are easy now, and equally likely again.
    assert set(drawn) == set(setting.places) and max(drawn.values()) < 30


@pytest.mark.processes
def test_ours_follows_what_it_is_told():
    items, feedback = choices.chosen("ours", choices.SETTINGS["levels"], 0)
    levels = []
    for item in islice(items, 30):
        levels.append(item.level)
        feedback(item, [1.0] * 8)
    assert levels[0] == pytest.approx(0.3) and levels[-1] > 0.7
    items, feedback = choices.chosen("ours", choices.SETTINGS["tasks"], 0)
    for item in islice(items, 200):
        feedback(item, [float(item.task in choices.LEARNABLE), 0.0])
    drawn = Counter(item.task in choices.LEARNABLE for item in islice(items, 60))
    assert drawn[True] > 45
