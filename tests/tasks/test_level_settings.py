"""How the level of a task is chosen, from what the settings say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rg_env.errors import SettingError
from rg_env.tasks.level_settings import (
    LevelRule,
    build_rules,
    check_setting,
    parse_setting,
)

KNOWN = ["acre", "gcd", "lcm", "maze", "number_sorting", "word_sorting"]
NO_SCALE = {"acre": "the library has no curriculum for it"}


def rules(mode=None, tasks=KNOWN, **task_levels):
    names = {name.replace("any_", "*_"): value for name, value in task_levels.items()}
    return build_rules(tasks, KNOWN, NO_SCALE, mode, names)


@pytest.mark.parametrize(
    ("setting", "rule"),
    [
        (None, LevelRule("default")),
        ("random", LevelRule("random", 0.0, 1.0)),
        ("curriculum", LevelRule("curriculum", 0.0, 1.0)),
        (0.7, LevelRule("fixed", 0.7, 0.7)),
        ([0.2, 0.6], LevelRule("random", 0.2, 0.6)),
    ],
)
def test_a_setting_is_a_rule_for_every_task_that_has_a_scale(setting, rule):
    found = rules(setting)
    assert found.pop("acre") == LevelRule("default")
    assert set(found.values()) == {rule}


def test_a_range_is_the_bounds_of_the_curriculum_where_that_is_the_mode():
    found = rules("curriculum", gcd=[0.2, 0.6])
    assert found["gcd"] == LevelRule("curriculum", 0.2, 0.6)


def test_a_name_wins_over_a_pattern_wherever_it_stands():
    found = rules("random", word_sorting=0.1, any_sorting=0.9, gcd=None)
    assert found["word_sorting"].low == 0.1
    assert found["number_sorting"].low == 0.9
    assert found["gcd"].mode == "default"
    assert found["maze"].mode == "random"


def test_a_pattern_leaves_tasks_without_a_scale_as_they_are():
    assert build_rules(KNOWN, KNOWN, NO_SCALE, None, {"*": 0.5})["acre"] == LevelRule()


@pytest.mark.parametrize(
    ("task_levels", "sentence"),
    [
        ({"gdc": 0.5}, "task_levels: unknown task 'gdc'; did you mean 'gcd'?"),
        ({"acre": 0.5}, "'acre' has no difficulty scale (the library has no curricu"),
        ({"maze": 0.5}, "task_levels: 'maze' is not among the chosen tasks"),
    ],
)
def test_a_name_that_cannot_have_a_level_is_refused(task_levels, sentence):
    with pytest.raises(SettingError) as caught:
        build_rules(["acre", "gcd"], KNOWN, NO_SCALE, None, task_levels)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    "setting", ["hard", -0.1, 1.1, float("nan"), True, [0.5], [0.6, 0.2], [0, 2], {}]
)
def test_what_is_no_level_is_refused_with_what_is_allowed(setting):
    with pytest.raises(ValueError, match="'random', 'curriculum', a level in 0 to 1"):
        check_setting(setting)


def test_a_mode_that_is_misspelt_is_told_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'curriculum'"):
        check_setting("curiculum")


@pytest.mark.parametrize("setting", [None, "random", "curriculum", 0, 1.0, [0, 0.5]])
def test_what_is_a_level_is_taken(setting):
    check_setting(setting)


def test_a_number_on_the_command_line_is_a_level():
    assert parse_setting("0.7") == 0.7
    assert parse_setting("random") == "random"


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1, exclude_max=True))
def test_a_level_drawn_from_a_range_lies_in_it(one, other, point):
    low, high = sorted((one, other))
    assert low <= LevelRule("random", low, high).uniform(point) <= high
