"""Shaping: length penalty, truncation and variance; size and order always stay."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rg_env.rollouts.shaping import (
    above_baseline,
    has_variance,
    penalise_length,
    truncation_overrides,
)

rollouts = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 2_000)), max_size=16)


@pytest.mark.parametrize(
    ("score", "reward"), [(1.0, 1.0), (0.7, 0.5), (0.4, 0.0), (0.1, 0.0), (0.0, 0.0)]
)
def test_what_guessing_scores_is_nothing_and_what_is_right_stays(score, reward):
    assert above_baseline([score], 0.4) == pytest.approx([reward])


def test_scores_without_a_baseline_stay_to_the_last_bit():
    assert above_baseline([0.1, 1 / 3, 1.0], 0.0) == [0.1, 1 / 3, 1.0]


@pytest.mark.parametrize("baseline", [-0.1, 1.0, float("nan")])
def test_a_baseline_that_leaves_nothing_above_it_is_refused(baseline):
    with pytest.raises(ValueError, match="baseline"):
        above_baseline([1.0], baseline)


@given(st.lists(st.floats(0, 1), max_size=8), st.floats(0, 0.99))
def test_rewards_above_a_baseline_keep_the_order_of_the_scores(scores, baseline):
    rewards = above_baseline(scores, baseline)
    assert all(0.0 <= reward <= 1.0 for reward in rewards)
    assert [r for _, r in sorted(zip(scores, rewards, strict=True))] == sorted(rewards)


@pytest.mark.parametrize(
    ("length", "score"),
    [(0, 1.0), (750, 1.0), (800, 0.8), (875, 0.5), (1000, 0.0), (1200, 0.0)],
)
def test_the_penalty_falls_linearly_from_three_quarters_of_the_limit(length, score):
    assert penalise_length([1.0], [length], 1000) == pytest.approx([score])


@pytest.mark.parametrize(
    ("scores", "lengths", "shaped"),
    [
        ([0.5, 1.0], [875, 100], [0.25, 1.0]),
        ([1.0, 0.49], [999, 999], [1.0, 0.49]),
        ([0.5], [1000], [0.0]),
        ([], [], []),
    ],
)
def test_one_score_below_a_half_spares_the_whole_group(scores, lengths, shaped):
    assert penalise_length(scores, lengths, 1000) == shaped


def test_scores_without_their_lengths_are_refused():
    with pytest.raises(ValueError, match="2 scores but 1 lengths"):
        penalise_length([1.0, 1.0], [10], 1000)


def test_the_scores_passed_in_stay_as_they_were():
    scores = [1.0, 0.2]
    penalise_length(scores, [999, 999], 1000).clear()
    assert scores == [1.0, 0.2]


@given(rollouts, st.integers(1, 2_000))
def test_a_penalty_keeps_the_size_and_never_raises_a_score(group, limit_tokens):
    scores = [score for score, _ in group]
    shaped = penalise_length(scores, [length for _, length in group], limit_tokens)
    assert len(shaped) == len(scores)
    assert all(0.0 <= new <= old for new, old in zip(shaped, scores, strict=True))


@pytest.mark.slow
@given(rollouts)
def test_a_penalty_keeps_the_order(group):
    scores, lengths = [s for s, _ in group], [n for _, n in group]
    shaped = penalise_length(scores, lengths, 1000)
    backwards = penalise_length(scores[::-1], lengths[::-1], 1000)
    assert backwards == shaped[::-1]


def test_only_truncated_rollouts_lose_their_advantage():
    reasons = ["stop", "length", None, "abort"]
    overrides = truncation_overrides(reasons, mask_truncated=True)
    assert overrides == [{}, {"set_advantage_to_zero": True}, {}, {}]
    assert len({id(each) for each in overrides}) == 4
    assert truncation_overrides(reasons, mask_truncated=False) == [{}] * 4


@pytest.mark.parametrize(
    ("scores", "signal"),
    [([0.0, 0.0], False), ([1.0, 1.0], False), ([1.0], False), ([0.3, 0.30001], True)],
)
def test_equal_scores_have_no_variance(scores, signal):
    assert has_variance(scores) is signal
