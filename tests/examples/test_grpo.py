"""From the groups of a batch to one weight for every token."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.train_small.grpo import Objective, advantages, update_of
from tests.examples.groups_of_rows import batches, group_of

STEP = 1e-6
CLIP = Objective().clip


def rows_of(groups, name):
    return [row for group in groups for row in getattr(group, name)]


def sampled(groups):
    """Return the log-probabilities of rows while the weights are those that sampled."""
    return [row.astype(float) for row in rows_of(groups, "logprobs")]


def shifted(groups, by):
    return [row + by for row in sampled(groups)]


@settings(max_examples=40)
@given(batches(), st.sampled_from([0.0, 0.5]), st.data())
def test_a_weight_is_the_derivative_of_the_objective(batch, kl, data):
    groups, now = batch
    start = [row + 0.1 for row in now]
    objective = Objective(kl_weight=kl)
    row = data.draw(st.integers(0, len(now) - 1))
    token = data.draw(st.integers(0, len(now[row]) - 1))

    def value(by):
        moved = [array.copy() for array in now]
        moved[row][token] += by
        return update_of(groups, moved, objective, start).objective

    slope = (value(STEP) - value(-STEP)) / (2 * STEP)
    weight = update_of(groups, now, objective, start).weights[row][token]
    assert weight == pytest.approx(slope, abs=1e-5)


@given(batches())
def test_only_tokens_that_were_generated_have_a_weight(batch):
    groups, now = batch
    for weight, mask in zip(
        update_of(groups, now, Objective()).weights,
        rows_of(groups, "trained"),
        strict=True,
    ):
        assert len(weight) == len(mask)
        assert not weight[~mask].any()


@given(batches())
def test_while_the_weights_are_those_that_sampled_all_ratios_are_1(batch):
    groups, _ = batch
    ratios = update_of(groups, sampled(groups), Objective()).ratios
    assert (ratios.mean, ratios.apart, ratios.furthest, ratios.clipped) == (1, 0, 0, 0)


def test_log_probabilities_that_are_shifted_by_a_token_show_in_the_ratios():
    groups = [group_of([0, 1, 0, 1])]
    moved = [np.roll(row, 1) for row in sampled(groups)]
    ratios = update_of(groups, moved, Objective()).ratios
    assert ratios.furthest > 0.1
    assert ratios.apart > 0.1


@given(st.lists(st.floats(0, 1), min_size=2, max_size=8))
def test_advantages_are_normalised_within_the_group(scores):
    values = advantages(group_of(scores))
    assert values.mean() == pytest.approx(0, abs=1e-6)
    assert values.std() == pytest.approx(1) or not values.any()


def test_equal_scores_teach_nothing():
    groups = [group_of([0.3] * 4)]
    weights = update_of(groups, shifted(groups, 0.1), Objective()).weights
    assert not np.concatenate(weights).any()


def test_a_rollout_whose_override_says_so_teaches_nothing_and_counts_for_the_mean():
    zero = [True, False, False]
    values = advantages(group_of([1, 0, 0], zero))
    assert values.tolist() == [0, *advantages(group_of([1, 0, 0]))[1:]]


@pytest.mark.parametrize("away", [2 * CLIP, -2 * CLIP])
def test_the_clip_ends_only_what_leads_further_away(away):
    groups = [group_of([0, 1])]
    update = update_of(groups, shifted(groups, np.log1p(away)), Objective())
    bad, good = (weight.any() for weight in update.weights)
    assert (bad, good) == ((True, False) if away > 0 else (False, True))


def test_every_generated_token_of_a_batch_counts_the_same():
    groups = [group_of([0, 1], seed=1), group_of([1, 0], seed=2)]
    update = update_of(groups, sampled(groups), Objective())
    sizes = {abs(w) for row in update.weights for w in row.tolist() if w}
    assert len(sizes) == 1
    count = sum(mask.sum() for mask in rows_of(groups, "trained"))
    assert sizes.pop() == pytest.approx(1 / count)


@given(st.floats(-1, 1).filter(lambda by: abs(by) > 1e-3))
def test_the_distance_to_the_start_pulls_back_to_it(by):
    groups = [group_of([0.5, 0.5])]
    now = shifted(groups, by)
    update = update_of(groups, now, Objective(kl_weight=0.1), sampled(groups))
    weights = np.concatenate(update.weights)
    assert update.kl > 0
    assert set(np.sign(weights[weights != 0])) == {-np.sign(by)}


def test_a_distance_to_a_reference_needs_the_reference():
    groups = [group_of([0, 1])]
    with pytest.raises(ValueError, match="reference"):
        update_of(groups, sampled(groups), Objective(kl_weight=0.1))


def test_a_batch_without_a_generated_token_is_refused():
    group = group_of([0, 1])
    masked = [np.zeros(len(row), bool) for row in group.tokens]
    empty = dataclasses.replace(group, trained=masked)
    with pytest.raises(ValueError, match="no token"):
        update_of([empty], sampled([empty]), Objective())
