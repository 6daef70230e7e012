"""Results change the levels and weights of the tasks that are sampled."""

import pytest
from hypothesis import strategies as st

from rg_env.library.scales import Scale, Step
from rg_env.stream.curriculum import MIN_GROUPS, START
from rg_env.stream.difficulty import Difficulty, LevelRule
from rg_env.stream.feedback import AdaptiveWeights, Feedback
from tests.support.learners import run_training

STEPS = tuple(Step((n,), {"size": n}, item_ms=1.0) for n in range(3))


def feedback(mode="curriculum", adaptive=None):
    found = Feedback(0.7)
    scales = {"maze": Scale("maze", STEPS)}
    rules = {"maze": LevelRule(mode)}
    found.attach(Difficulty(scales, rules, found.curriculum), adaptive)
    return found


def test_groups_above_the_target_raise_the_level_of_their_task():
    followed = feedback()
    changes = [followed.take("maze", 1.0, START, True) for _ in range(MIN_GROUPS)]
    assert changes[:-1] == [None] * (MIN_GROUPS - 1)
    assert changes[-1].new > changes[-1].old == START
    assert followed.changes == 1
    assert followed.stats()["level_changes"] == 1


@pytest.mark.parametrize("mode", ["default", "random", "fixed"])
def test_no_level_moves_where_the_settings_choose_it(mode):
    followed = feedback(mode)
    taken = [followed.take("maze", 1.0, START, True) for _ in range(MIN_GROUPS)]
    assert taken == [None] * MIN_GROUPS
    assert not followed.moves_something


def test_the_details_and_the_table_have_the_level_and_the_results_of_each_task():
    followed = feedback()
    for score in (0.0, 1.0):
        followed.take("maze", score, START, score > 0)
    details = {
        "complexity": START,
        "groups_processed": 2,
        "recent_accuracy": 0.5,
        "history_length": 2,
        "adjustable": False,
        "groups_with_variance": 0.5,
        "adaptive_weight": 1.0,
    }
    assert followed.details() == {"maze": details}
    assert followed.table() == (["task", *details], [["maze", *details.values()]])


def test_a_group_without_variance_lowers_the_weight_of_its_task():
    followed = feedback("default", AdaptiveWeights(["maze"]))
    assert followed.moves_something
    followed.take("maze", 1.0, None, False)
    assert followed.adaptive.weight_of("maze") < 1.0


def test_a_group_of_a_task_that_is_not_sampled_is_counted_and_moves_nothing():
    followed = feedback(adaptive=AdaptiveWeights(["maze"]))
    assert followed.take("gcd", 1.0, 0.3, False) is None
    assert followed.progress.group_counts == {"gcd": 1}
    assert followed.adaptive.weight_of("maze") == 1.0


# -- adaptive weights ------------------------------------------------------------------

SIGNALS = st.lists(st.booleans(), max_size=30)


def weights(*signals, floor=0.05):
    made = AdaptiveWeights(["gcd", "lcm"], floor)
    for has_variance in signals:
        made.record("gcd", has_variance)
    return made


def test_a_task_without_variance_comes_down_to_the_floor_and_back_after_one_group():
    assert weights().weight_of("gcd") == 1.0
    assert weights(*[False] * 40).weight_of("gcd") == pytest.approx(0.05)
    assert weights(*[False] * 40, True).weight_of("gcd") > 0.5
    assert weights(False).weight_of("lcm") == 1.0


@pytest.mark.slow
def test_a_simulated_run_from_weak_to_strong_has_half_the_zero_variance_groups():
    uniform, adaptive = (run_training(2, 32_000, way, seed=1) for way in (False, True))
    assert uniform > 0.5
    assert adaptive < 0.5 * uniform
