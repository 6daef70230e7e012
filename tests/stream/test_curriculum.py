"""The curriculum: a task's level follows the results that were made at it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rg_env.stream.adaptive_weights import AdaptiveWeights
from rg_env.stream.curriculum import (
    BAND,
    FAST_STEP,
    GAIN,
    HISTORY_GROUPS,
    MIN_GROUPS,
    NEAR,
    RECENT_GROUPS,
    START_LEVEL,
    STEP,
    Feedback,
    TaskHistory,
)
from tests.support.learners import IMPROVING, LEARNERS, run_task, run_training

LEVELS = st.floats(0, 1)
MEANS = st.lists(st.floats(0, 1), max_size=40)


def run_of(target=0.7, bounds=(0.0, 1.0), level=None):
    """Return the feedback of a run of the task `gcd`."""
    run = Feedback(target)
    run.moving_tasks = ["gcd"]
    run.curriculum.set_bounds({"gcd": bounds})
    if level is not None:
        run.curriculum["gcd"] = level
    return run


def level_of(run):
    return run.curriculum.level_of("gcd")


def score(run, *means, at=None):
    """Record group means, made at the level in force or at another one."""
    return [
        run.take("gcd", mean, level_of(run) if at is None else at, True)
        for mean in means
    ]


@given(st.lists(st.floats(0.7 - BAND, 0.7 + BAND), max_size=30))
def test_results_within_the_band_move_nothing(means):
    assert not any(score(run_of(), *means))


@pytest.mark.parametrize(
    ("level", "mean", "step"),
    [
        (None, 1.0, FAST_STEP),
        (0.3, 1.0, FAST_STEP),
        (0.6, 1.0, STEP),
        (0.3, 0.0, -STEP),
        (0.6, 0.0, -FAST_STEP),
        (0.6, 0.4, -STEP),
        (0.3, 0.85, STEP),
    ],
)
def test_steady_results_far_from_the_target_move_by_a_whole_step(level, mean, step):
    run = run_of(level=level)
    old = level_of(run)
    *before, change = score(run, *[mean] * MIN_GROUPS)
    assert not any(before)
    assert change.old == old
    assert change.new == pytest.approx(old + step)
    assert run.changes == run.stats()["level_changes"] == 1


@pytest.mark.parametrize(
    ("target", "means", "most"),
    [(0.7, (1.0, 0.75, 1.0), 0.9 * STEP), (0.2, (1.0, 0.0, 1.0), STEP / 2)],
)
def test_scattered_results_move_by_a_smaller_step_and_at_least_half_a_step(
    target, means, most
):
    *_, change = score(run_of(target, level=0.6), *means)
    assert STEP / 2 - 1e-9 < change.new - change.old < most + 1e-9


@given(st.lists(st.floats(0, 1), max_size=20))
def test_after_a_turn_steps_shrink_with_the_distance_from_the_target(means):
    run = run_of(level=0.6)
    score(run, *[1.0] * 4, *[0.0] * 20)
    for change in filter(None, score(run, *means)):
        if 0 < change.accuracy < 1:  # beyond that it is not known how far
            most = GAIN * abs(change.accuracy - 0.7)
            assert abs(change.new - change.old) <= most + 1e-9


def test_the_last_five_groups_decide():
    *_, change = score(run_of(level=0.6), *[0.7] * 8, *[1.0] * RECENT_GROUPS)
    assert change.groups == RECENT_GROUPS


@given(st.lists(st.floats(0, 1), max_size=100), LEVELS, LEVELS)
def test_stale_results_of_an_old_level_do_not_move_the_level(means, level, old):
    run = run_of(level=level)
    score(run, *means, at=old)
    assert level_of(run) == level or abs(level - old) <= NEAR + 1e-6


def test_results_before_a_level_was_set_do_not_count_even_when_it_is_near():
    run = run_of()
    score(run, *[0.7] * 4)
    run.curriculum["gcd"] = START_LEVEL + NEAR / 2
    assert not any(score(run, 1.0, 1.0))
    assert score(run, 1.0)[0].groups == 3


@pytest.mark.parametrize("level", [-0.01, 1.01, float("nan")])
def test_a_level_out_of_range_is_refused_and_changes_nothing(level):
    run = run_of(level=0.4)
    with pytest.raises(ValueError, match="gcd"):
        run.curriculum["gcd"] = level
    assert level_of(run) == 0.4


def test_a_level_set_outside_the_bounds_is_used_and_comes_back_by_results_alone():
    run = run_of(bounds=(0.2, 0.5))
    run.curriculum["gcd"] = 0.8
    assert not any(score(run, *[1.0] * 5))
    score(run, *[0.0] * 5)
    assert level_of(run) < 0.8
    score(run, *[0.0] * 60)
    assert level_of(run) == 0.2


@pytest.mark.slow
@given(MEANS, MEANS, st.none() | LEVELS)
def test_a_state_survives_json_and_continues(before, after, level):
    first = run_of(level=level)
    second = run_of()
    score(first, *before)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert score(first, *after) == score(second, *after)
    assert second.curriculum.stats() == first.curriculum.stats()


def test_the_newest_group_means_are_kept_with_their_levels_and_all_are_counted():
    history = TaskHistory({}, {}, {}, {})
    for number in range(HISTORY_GROUPS + 5):
        level = None if number % 2 else number / 40
        history.record_group("gcd", number / 20, level, has_variance=bool(number % 3))
    numbers = range(5, HISTORY_GROUPS + 5)
    assert history.history == {"gcd": [n / 20 for n in numbers]}
    assert history.level_history == {
        "gcd": [None if n % 2 else n / 40 for n in numbers]
    }
    assert history.group_counts == {"gcd": HISTORY_GROUPS + 5}
    assert history.variance_counts == {"gcd": 10}


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNERS)
def test_a_simulated_learner_is_brought_to_the_target_and_held_there(name):
    reached, offs = run_task(LEARNERS[name], in_flight=1)
    assert reached <= 100
    assert sum(off > BAND for off in offs) <= 1


@pytest.mark.parametrize("name", [n for n in LEARNERS if n != IMPROVING])
def test_sixteen_groups_in_flight_do_not_shake_the_mean(name):
    reached, offs = run_task(LEARNERS[name], in_flight=16)
    assert reached <= 100
    assert sum(offs) / len(offs) <= BAND


# -- feedback --------------------------------------------------------------------------


def feedback(*moving, adaptive=None):
    run = Feedback(0.7, adaptive)
    run.moving_tasks = moving
    return run


def test_the_details_and_the_table_have_the_level_and_the_results_of_each_task():
    followed = feedback("maze")
    for score in (0.0, 1.0):
        followed.take("maze", score, START_LEVEL, score > 0)
    details = {
        "complexity": START_LEVEL,
        "groups_processed": 2,
        "recent_accuracy": 0.5,
        "history_length": 2,
        "adjustable": False,
        "groups_with_variance": 0.5,
        "adaptive_weight": 1.0,
    }
    assert followed.details() == {"maze": details}
    assert followed.table() == (["task", *details], [["maze", *details.values()]])
    followed.progress.group_counts["sudoku"] = 0  # as a caller may set it
    assert followed.details()["sudoku"]["history_length"] == 0


def test_a_group_without_variance_lowers_its_weight_and_moves_no_level_that_is_chosen():
    followed = feedback("maze", adaptive=AdaptiveWeights())
    taken = [followed.take("gcd", 1.0, START_LEVEL, False) for _ in range(MIN_GROUPS)]
    assert taken == [None] * MIN_GROUPS
    assert followed.progress.group_counts == {"gcd": MIN_GROUPS}
    assert followed.adaptive.factor_of("gcd") < followed.adaptive.factor_of("maze")
    assert followed.has_effect and not feedback().has_effect


# -- adaptive weights ------------------------------------------------------------------

SIGNALS = st.lists(st.booleans(), max_size=30)


def weights(*signals, floor=0.05):
    estimates = AdaptiveWeights(floor)
    for has_variance in signals:
        estimates.record("gcd", has_variance)
    return estimates


def test_a_task_without_variance_comes_down_to_the_floor_and_back_after_one_group():
    assert weights().factor_of("gcd") == 1.0
    assert weights(*[False] * 40).factor_of("gcd") == pytest.approx(0.05)
    assert weights(*[False] * 40, True).factor_of("gcd") == pytest.approx(0.525)
    assert weights(False).factor_of("lcm") == 1.0


@pytest.mark.slow
def test_a_simulated_run_from_weak_to_strong_has_half_the_zero_variance_groups():
    uniform, adaptive = map(run_training, (False, True))
    assert uniform > 0.5
    assert adaptive < 0.5 * uniform
