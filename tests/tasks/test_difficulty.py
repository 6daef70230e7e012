"""From a draw to dataset parameters: levels, and the step that each falls on."""

import pytest

from rg_env.tasks.curriculum import START, Curriculum
from rg_env.tasks.difficulty import Difficulty
from rg_env.tasks.level_settings import LevelRule
from rg_env.tasks.scales import Scale, Step

STEPS = tuple(Step((n,), {"size": n}, item_ms=10.0 * (n + 1)) for n in range(3))
SCALES = {"maze": Scale("maze", STEPS)}


def difficulty(mode="default", low=0.0, high=1.0):
    rule = LevelRule(mode, low, high)
    return Difficulty(SCALES, {"maze": rule, "acre": rule}, Curriculum(0.7))


@pytest.mark.parametrize(
    ("mode", "level"),
    [("default", None), ("fixed", 0.2), ("random", 0.3), ("curriculum", START)],
)
def test_the_rule_of_a_task_says_its_level(mode, level):
    assert difficulty(mode, 0.2, 0.6).level_at("maze", 0.25) == pytest.approx(level)


@pytest.mark.parametrize("mode", ["fixed", "random", "curriculum"])
def test_a_task_without_a_scale_has_no_level(mode):
    levels = difficulty(mode)
    assert levels.level_at("acre", 0.5) is None
    assert levels.fixed_level("acre") is None
    assert levels.params_at("acre", None, seed=1) == {}
    assert not levels.follows_results("acre")
    assert levels.expected_ms("acre", None) == 0.0


def test_only_a_level_that_never_moves_is_fixed():
    assert difficulty("fixed", 0.2, 0.2).fixed_level("maze") == 0.2
    assert difficulty("random").fixed_level("maze") is None


def test_results_move_the_curriculum_alone():
    assert difficulty("curriculum").follows_results("maze")
    assert not difficulty("random").follows_results("maze")


@pytest.mark.parametrize(("level", "ms"), [(None, 20.0), (0.5, 20.0), (0.6, 30.0)])
def test_an_item_is_expected_to_take_as_long_as_the_slower_of_its_steps(level, ms):
    assert difficulty().expected_ms("maze", level) == ms


def test_the_seed_decides_which_of_two_steps_an_item_falls_on():
    levels = difficulty()
    found = {levels.params_at("maze", 0.25, seed)["size"] for seed in range(50)}
    assert found == {0, 1}
    again = [levels.params_at("maze", 0.25, seed) for seed in (3, 3)]
    assert again[0] == again[1]
