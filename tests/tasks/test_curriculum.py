"""The curriculum: a task's level follows the results that were made at it."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rg_env.errors import SettingError
from rg_env.tasks.curriculum import (
    BAND,
    FAST_STEP,
    GAIN,
    MIN_GROUPS,
    NEAR,
    START,
    STEP,
    Curriculum,
)
from rg_env.tasks.task_history import RECENT_GROUPS, TaskHistory
from tests.support.learners import LEARNERS, OUT_OF_REACH, run_task

LEVELS = st.floats(0, 1)
MEANS = st.lists(st.floats(0, 1), max_size=40)
NOT_A_LEVEL = [-0.01, 1.01, float("nan"), float("inf"), "0.5", None, True]


class Run:
    """One task `gcd`, its curriculum and its results."""

    def __init__(self, target=0.7, bounds=None, level=None):
        self.curriculum = Curriculum(target, {"gcd": bounds} if bounds else None)
        self.progress = TaskHistory()
        if level is not None:
            self.curriculum.levels["gcd"] = level

    @property
    def level(self):
        return self.curriculum.level_of("gcd")

    def score(self, *means, at=None):
        """Record group means, made at the level in force or at another one."""
        changes = []
        for mean in means:
            made_at = self.level if at is None else at
            self.progress.record_group("gcd", mean, made_at)
            changes.append(self.curriculum.update("gcd", self.progress))
        return changes


# -- the law ---------------------------------------------------------------------------


def test_a_task_begins_at_the_start():
    assert Curriculum(0.7).level_of("gcd") == START == 0.3


@given(MEANS, LEVELS)
def test_a_level_never_leaves_the_scale(means, target):
    run = Run(target)
    run.score(*means)
    assert 0 <= run.level <= 1


@given(MEANS, st.tuples(LEVELS, LEVELS).map(sorted))
def test_results_never_move_a_level_out_of_its_bounds(means, bounds):
    run = Run(bounds=tuple(bounds))
    run.score(*means)
    assert bounds[0] <= run.level <= bounds[1]


@pytest.mark.slow
@given(st.lists(st.floats(0, 1), max_size=MIN_GROUPS - 1))
def test_fewer_than_three_groups_move_nothing(means):
    assert not any(Run().score(*means))


@given(st.lists(st.floats(0.7 - BAND, 0.7 + BAND), max_size=30))
def test_results_within_the_band_move_nothing(means):
    assert not any(Run().score(*means))


@given(MEANS)
def test_a_level_moves_towards_the_target_by_no_more_than_the_fast_step(means):
    for change in filter(None, Run().score(*means)):
        assert (change.new > change.old) == (change.accuracy > 0.7)
        assert abs(change.new - change.old) <= FAST_STEP + 1e-9


@pytest.mark.parametrize(
    ("level", "mean", "step"),
    [
        (0.3, 1.0, FAST_STEP),
        (0.6, 1.0, STEP),
        (0.3, 0.0, -STEP),
        (0.6, 0.0, -FAST_STEP),
        (0.6, 0.4, -STEP),
        (0.3, 0.85, STEP),
    ],
)
def test_steady_results_far_from_the_target_move_by_a_whole_step(level, mean, step):
    run = Run(level=level)
    *_, change = run.score(*[mean] * MIN_GROUPS)
    assert change.new == pytest.approx(level + step)


@pytest.mark.parametrize(
    ("target", "means", "most"),
    [(0.7, (1.0, 0.75, 1.0), 0.9 * STEP), (0.2, (1.0, 0.0, 1.0), STEP / 2)],
)
def test_scattered_results_move_by_a_smaller_step_and_at_least_half_a_step(
    target, means, most
):
    *_, change = Run(target, level=0.6).score(*means)
    assert STEP / 2 - 1e-9 < change.new - change.old < most + 1e-9


@pytest.mark.slow
@given(st.lists(st.floats(0, 1), min_size=20, max_size=40))
def test_after_a_turn_steps_shrink_with_the_distance_from_the_target(means):
    run = Run(level=0.6)
    run.score(*[1.0] * 4)
    first_turn = next(filter(None, run.score(*[0.0] * 20)))
    assert first_turn.new < first_turn.old
    for change in filter(None, run.score(*means)):
        if 0 < change.accuracy < 1:  # beyond that it is not known how far
            most = GAIN * abs(change.accuracy - 0.7)
            assert abs(change.new - change.old) <= most + 1e-9


def test_the_last_five_groups_of_its_task_decide():
    run = Run(level=0.6)
    *_, change = run.score(*[0.7] * 8, *[1.0] * RECENT_GROUPS)
    assert change.groups == RECENT_GROUPS
    assert run.curriculum.level_of("lcm") == START


def test_a_change_tells_what_moved_it():
    run = Run(level=0.6)
    *_, change = run.score(1.0, 1.0, 1.0)
    assert (change.task, change.old, change.new) == ("gcd", 0.6, run.level)
    assert (change.accuracy, change.groups) == (1.0, 3)


# -- results that arrive late ----------------------------------------------------------


@given(st.lists(st.floats(0, 1), max_size=100), LEVELS, LEVELS)
def test_stale_results_of_an_old_level_do_not_move_the_level(means, level, old):
    run = Run(level=level)
    run.score(*means, at=old)
    assert run.level == level or abs(level - old) <= NEAR + 1e-6


@pytest.mark.parametrize("mean", [0.0, 1.0])
@pytest.mark.parametrize("in_flight", [16, 128])
def test_a_pipeline_full_of_one_level_does_not_make_it_run_away(mean, in_flight):
    run = Run(level=0.5)
    run.score(*[mean] * in_flight, at=0.5)
    assert 0 < abs(run.level - 0.5) < 2 * FAST_STEP


def test_late_results_move_no_further_once_the_level_is_where_they_put_it():
    run = Run(level=0.5)
    run.score(*[0.5] * 20, at=0.5)
    settled = run.level
    assert not any(run.score(*[0.5] * 20, at=0.5))
    assert settled < 0.5


def test_results_made_at_no_level_do_not_move_it():
    run = Run()
    for _ in range(20):
        run.progress.record_group("gcd", 1.0)
        assert run.curriculum.update("gcd", run.progress) is None


# -- levels from outside ---------------------------------------------------------------


def test_a_level_can_be_set_through_the_mapping():
    run = Run()
    run.curriculum.levels["gcd"] = 0.8
    assert run.level == 0.8
    assert dict(run.curriculum.levels) == {"gcd": 0.8}


def test_results_before_a_level_was_set_do_not_count_even_when_it_is_near():
    run = Run()
    run.score(*[0.7] * 4)
    run.curriculum.set_level("gcd", START + NEAR / 2)
    assert not any(run.score(1.0, 1.0))
    assert run.score(1.0)[0].groups == 3


@pytest.mark.parametrize("level", NOT_A_LEVEL)
def test_a_level_out_of_range_is_refused_and_changes_nothing(level):
    run = Run(level=0.4)
    with pytest.raises(ValueError, match="gcd"):
        run.curriculum.levels["gcd"] = level
    assert run.level == 0.4


def test_levels_can_be_set_before_the_tasks_are_known():
    curriculum = Curriculum(0.7)
    curriculum.levels.update({"gcd": 0.8, "lcm": 0.1})
    curriculum.limit({"gcd": (0.0, 1.0), "lcm": (0.0, 1.0)}, {})
    assert curriculum.level_of("lcm") == 0.1


@pytest.mark.parametrize(
    ("task", "says"), [("gdc", "did you mean 'gcd'"), ("acre", "because it is so")]
)
def test_a_level_of_a_task_without_levels_is_refused_by_name(task, says):
    bounds, unscaled = {"gcd": (0.0, 1.0)}, {"acre": "because it is so"}
    before, after = Curriculum(0.7), Curriculum(0.7)
    before.levels[task] = 0.5
    with pytest.raises(SettingError, match=says):
        before.limit(bounds, unscaled)
    after.limit(bounds, unscaled)
    with pytest.raises(SettingError, match=says):
        after.levels[task] = 0.5
    assert not after.levels


def test_a_level_set_outside_the_bounds_is_used_and_comes_back_by_results_alone():
    run = Run(bounds=(0.2, 0.5))
    run.curriculum.set_level("gcd", 0.8)
    assert not any(run.score(*[1.0] * 5))
    run.score(*[0.0] * 5)
    assert run.level < 0.8
    run.score(*[0.0] * 60)
    assert run.level == 0.2


def test_a_start_outside_the_bounds_is_moved_to_the_nearest():
    bounds = {"hard": (0.6, 0.9), "easy": (0.0, 0.2)}
    curriculum = Curriculum(0.7, bounds)
    assert [curriculum.level_of(task) for task in bounds] == [0.6, 0.2]


def test_a_deleted_level_is_the_start_again():
    run = Run(level=0.8)
    del run.curriculum.levels["gcd"]
    assert run.level == START


@pytest.mark.parametrize("bounds", [(0.5, 0.4), (-0.1, 0.5), (0.5, 1.1)])
def test_bounds_that_are_no_range_are_refused(bounds):
    with pytest.raises(ValueError, match="gcd: bounds"):
        Run(bounds=bounds)
    with pytest.raises(ValueError, match="gcd: bounds"):
        Curriculum(0.7).limit({"gcd": bounds}, {})


# -- figures ---------------------------------------------------------------------------


def test_there_are_stats_before_the_first_group():
    assert Curriculum(0.7).stats() == {
        "tasks_with_adjustments": 0,
        "tasks_too_easy": 0,
        "tasks_too_hard": 0,
        "target_accuracy": 0.7,
        "avg_complexity": START,
        "min_complexity": START,
        "max_complexity": START,
    }


def test_the_stats_are_over_the_tasks_that_were_seen_or_set():
    run = Run(level=0.8)
    run.score(0.6)
    run.progress.record_group("lcm", 1.0, START)
    run.curriculum.update("lcm", run.progress)
    stats = run.curriculum.stats()
    assert stats["tasks_with_adjustments"] == 1
    figures = [stats[f"{word}_complexity"] for word in ("min", "avg", "max")]
    assert figures == pytest.approx([START, (START + 0.8) / 2, 0.8])


@pytest.mark.parametrize(
    ("mean", "level", "says"), [(1.0, 1.0, "too_easy"), (0.0, 0.0, "too_hard")]
)
def test_a_level_that_can_go_no_further_says_so(mean, level, says):
    run = Run()
    assert run.curriculum.at_bound("gcd") is None
    run.score(*[mean] * 60)
    assert (run.level, run.curriculum.at_bound("gcd")) == (level, says)
    assert run.curriculum.stats()[f"tasks_{says}"] == 1


# -- saving ----------------------------------------------------------------------------


@pytest.mark.slow
@given(MEANS, MEANS, st.none() | LEVELS)
def test_a_state_survives_json_and_continues(before, after, level):
    first, second = Run(level=level), Run()
    first.score(*before)
    for name in ("curriculum", "progress"):
        state = json.loads(json.dumps(getattr(first, name).state_dict()))
        getattr(second, name).load_state_dict(state)
    assert first.score(*after) == second.score(*after)
    assert second.curriculum.stats() == first.curriculum.stats()


def with_field(**fields):
    run = Run(level=0.4)
    run.score(1.0, 1.0, 1.0)
    state = run.curriculum.state_dict()
    state["tasks"]["gcd"].update(fields)
    return state


@pytest.mark.parametrize(
    "state",
    [
        None,
        [],
        {},
        {"tasks": []},
        {"tasks": {"gcd": 0.5}},
        {"tasks": {"gcd": {}}},
        with_field(unknown=1),
        with_field(level=1.5),
        with_field(level="0.5"),
        with_field(level=float("nan")),
        with_field(accuracy=-1),
        with_field(groups=-1),
        with_field(groups=1.5),
        with_field(counted_from=""),
        with_field(direction=2),
        with_field(turned=None),
    ],
)
def test_a_broken_state_is_refused_and_changes_nothing(state):
    run = Run(level=0.6)
    run.score(1.0, 1.0, 1.0)
    before = run.curriculum.state_dict()
    with pytest.raises(ValueError, match=r"Expected|missing|Invalid|unknown field"):
        run.curriculum.load_state_dict(state)
    assert run.curriculum.state_dict() == before


# -- simulated learners ----------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.name)
@pytest.mark.parametrize("target", [0.5, 0.7, 0.8])
def test_a_simulated_learner_is_brought_to_the_target_and_held_there(learner, target):
    trace = run_task(Curriculum(target), learner, target, 8, 1, random.Random(1))
    assert trace.reached is not None
    assert trace.reached <= 100
    assert sum(off > BAND for off in trace.off) <= 1


@pytest.mark.parametrize("learner", LEARNERS[:6], ids=lambda learner: learner.name)
def test_sixteen_groups_in_flight_do_not_shake_the_mean(learner):
    trace = run_task(Curriculum(0.7), learner, 0.7, 8, 16, random.Random(1))
    assert trace.reached is not None
    assert trace.reached <= 100
    assert sum(trace.off) / len(trace.off) <= BAND


@pytest.mark.parametrize("learner", OUT_OF_REACH, ids=lambda learner: learner.name)
def test_a_simulated_learner_out_of_reach_is_left_at_the_bound(learner):
    curriculum = Curriculum(0.7)
    run_task(curriculum, learner, 0.7, 8, 1, random.Random(1))
    is_strong = learner.accuracy(0.0, 0) > 0.7
    assert curriculum.level_of("task") == (1.0 if is_strong else 0.0)
    assert curriculum.at_bound("task") == ("too_easy" if is_strong else "too_hard")
