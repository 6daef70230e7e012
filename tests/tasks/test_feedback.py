"""Results change the levels and weights of the tasks that are sampled."""

import pytest

from rg_env.tasks.adaptive import AdaptiveWeights
from rg_env.tasks.curriculum import MIN_GROUPS, START
from rg_env.tasks.difficulty import Difficulty, LevelRule
from rg_env.tasks.feedback import Feedback
from rg_env.tasks.scales import Scale, Step

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


def test_the_details_of_a_task_are_its_level_and_its_results():
    followed = feedback()
    for score in (0.0, 1.0):
        followed.take("maze", score, START, True)
    assert followed.details() == {
        "maze": {
            "complexity": START,
            "groups_processed": 2,
            "recent_accuracy": 0.5,
            "history_length": 2,
            "adjustable": False,
        }
    }


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


def test_before_the_tasks_are_known_results_are_only_kept():
    followed = Feedback(0.7)
    assert followed.take("maze", 1.0, 0.3, True) is None
    assert not followed.moves_something
    assert followed.progress.recent_accuracy("maze") == 1.0


def test_the_table_has_a_row_for_each_task_that_had_a_group():
    followed = feedback()
    followed.take("maze", 0.5, START, True)
    columns, rows = followed.table()
    assert dict(zip(columns, rows[0], strict=True)) == {
        "task": "maze",
        "level": START,
        "groups": 1,
        "recent accuracy": 0.5,
        "groups with variance": 1.0,
        "adaptive weight": 1.0,
        "out of reach": "",
    }
