"""The level of an item: from settings to rules, from a draw to parameters."""

import pytest

from rg_env.errors import SettingError
from rg_env.library.scales import Scale, Step
from rg_env.stream.curriculum import START_LEVEL, Curriculum
from rg_env.stream.difficulty import Difficulty, LevelRule, build_rules, level_setting

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


def test_a_name_wins_over_a_pattern_wherever_it_stands():
    found = rules("random", word_sorting=0.1, any_sorting=0.9, gcd=None)
    assert found["word_sorting"].low == 0.1
    assert found["number_sorting"].low == 0.9
    assert found["gcd"].mode == "default"
    assert found["maze"].mode == "random"
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
        level_setting(setting)


# -- from a draw to parameters ---------------------------------------------------------

STEPS = tuple(Step((n,), {"size": n}, None) for n in range(3))
SCALES = {"maze": Scale("maze", STEPS)}


def difficulty(mode="default", low=0.0, high=1.0):
    rule = LevelRule(mode, low, high)
    return Difficulty(SCALES, {"maze": rule, "acre": rule}, Curriculum(0.7))


@pytest.mark.parametrize(
    ("mode", "level", "fixed"),
    [
        ("default", None, None),
        ("fixed", 0.2, 0.2),
        ("random", 0.3, None),
        ("curriculum", START_LEVEL, None),
    ],
)
def test_a_level_is_fixed_or_moves_by_chance_or_by_results(mode, level, fixed):
    levels = difficulty(mode, 0.2, 0.6)
    assert levels.level_at("maze", 0.25) == pytest.approx(level)
    assert levels.fixed_level("maze") == fixed


def test_the_seed_decides_which_of_two_steps_an_item_falls_on():
    levels = difficulty()
    found = {levels.params_at("maze", 0.25, seed)["size"] for seed in range(50)}
    assert found == {0, 1}
    again = [levels.params_at("maze", 0.25, seed) for seed in (3, 3)]
    assert again[0] == again[1]
