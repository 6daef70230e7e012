"""The study of choice, where torch is installed."""

from collections import Counter
from itertools import islice

import pytest

pytest.importorskip("torch")
choices = pytest.importorskip("examples.studies.choices")


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
@pytest.mark.parametrize(("arm", "moves"), [("ours", -1), ("half", 1)])
def test_a_curriculum_goes_towards_its_target(arm, moves):
    items, feedback = choices.chosen(arm, choices.SETTINGS["levels"], 0)
    levels = []
    for item in islice(items, 10):
        levels.append(item.level)
        feedback(item, [0.6] * 8)
    assert moves * (levels[-1] - levels[0]) > 0.05


@pytest.mark.processes
def test_the_adaptive_choice_draws_what_is_right_at_times():
    items, feedback = choices.chosen("ours", choices.SETTINGS["tasks"], 0)
    for item in islice(items, 200):
        feedback(item, [float(item.task in choices.LEARNABLE), 0.0])
    drawn = Counter(item.task in choices.LEARNABLE for item in islice(items, 60))
    assert drawn[True] > 45
