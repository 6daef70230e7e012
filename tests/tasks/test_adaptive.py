"""Adaptive weights: tasks whose groups have reward variance are sampled more often."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rg_env.tasks.adaptive import AdaptiveWeights
from tests.support.learners import run_training

SHARES = st.floats(0.01, 1)
SIGNALS = st.lists(st.booleans(), max_size=30)


def weights(*signals, floor=0.05):
    made = AdaptiveWeights(["gcd", "lcm"], floor)
    for has_variance in signals:
        made.record("gcd", has_variance)
    return made


def both(made):
    return made.weight_of("gcd"), made.weight_of("lcm")


@given(SIGNALS, SHARES)
def test_a_weight_stays_between_its_floor_and_1(signals, floor):
    weight = weights(*signals, floor=floor).weight_of("gcd")
    assert floor <= weight * (1 + 1e-9)
    assert weight <= 1 + 1e-9


@given(SIGNALS)
def test_variance_never_lowers_a_weight_nor_does_a_group_without_raise_it(signals):
    now = weights(*signals).weight_of("gcd")
    assert weights(*signals, False).weight_of("gcd") <= now
    assert now <= weights(*signals, True).weight_of("gcd")


def test_every_task_begins_at_1_and_counts_its_own_groups_alone():
    assert both(weights()) == (1.0, 1.0)
    assert weights(False, False).weight_of("lcm") == 1.0


def test_a_task_without_any_variance_comes_down_to_the_floor():
    assert weights(*[False] * 40).weight_of("gcd") == pytest.approx(0.05)


def test_a_task_that_wakes_up_has_half_its_weight_back_after_one_group():
    woken = weights(*[False] * 40, True)
    assert woken.weight_of("gcd") > 0.5 * weights().weight_of("gcd")


def test_what_is_kept_does_not_grow_with_the_groups():
    few, many = weights(True, False), weights(*[True, False] * 500)
    assert len(json.dumps(many.state_dict())) <= len(json.dumps(few.state_dict())) + 20


def test_a_group_of_an_unknown_task_is_a_mistake_of_the_caller():
    with pytest.raises(KeyError):
        weights().record("unheard_of", True)


@pytest.mark.parametrize("floor", [0.0, -0.1, 1.1, float("nan")])
def test_a_floor_out_of_range_is_refused(floor):
    with pytest.raises(ValueError, match="floor"):
        weights(floor=floor)


@given(SIGNALS, SIGNALS)
def test_a_state_survives_json_and_continues(before, after):
    first, second = weights(*before), weights()
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    for made in (first, second):
        for has_variance in after:
            made.record("gcd", has_variance)
    assert both(second) == both(first)


@pytest.mark.parametrize(
    "state",
    [
        None,
        [],
        {},
        {"signal": []},
        {"signal": {"gcd": 0.5}},
        {"signal": {"gcd": 0.5, "lcm": 0.5, "maze": 0.5}},
        {"signal": {"gcd": 0.5, "lcm": 1.5}},
        {"signal": {"gcd": 0.5, "lcm": float("nan")}},
        {"signal": {"gcd": 0.5, "lcm": "0.5"}},
        {"signal": {"gcd": 0.5, "lcm": True}},
    ],
)
def test_a_broken_or_foreign_state_is_refused_and_changes_nothing(state):
    made = weights(False)
    before = both(made)
    with pytest.raises(ValueError, match=r"Expected|missing|adaptive weights"):
        made.load_state_dict(state)
    assert both(made) == before


@pytest.mark.slow
def test_a_simulated_run_from_weak_to_strong_has_half_the_zero_variance_groups():
    uniform, adaptive = (run_training(2, 32_000, way, seed=1) for way in (False, True))
    assert uniform > 0.5
    assert adaptive < 0.5 * uniform
