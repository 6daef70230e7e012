"""From the groups of a batch to the derivative of the loss."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.trainer.grpo import Batch, advantages
from tests.examples.groups_of_rows import batches, group_of

STEP = 1e-6
CLIP = 0.2


def sampled(groups):
    """Return the log-probabilities of all trained tokens when they were sampled."""
    return np.concatenate(
        [
            row[mask].astype(float)
            for group in groups
            for row, mask in zip(group.logprobs, group.trained, strict=True)
        ]
    )


@pytest.mark.slow
@settings(max_examples=40)
@given(batches(), st.data())
def test_it_is_the_derivative_of_the_loss_that_is_told(batch, data):
    groups, now = batch
    token = data.draw(st.integers(0, len(now) - 1))

    def of(by):
        moved = now.copy()
        moved[token] += by
        batch = Batch(groups, CLIP)
        derivative = batch.derivative(range(len(batch.rows)), moved)
        return derivative, batch.measures().loss

    slope = (of(STEP)[1] - of(-STEP)[1]) / (2 * STEP)
    assert of(0.0)[0][token] == pytest.approx(slope, abs=1e-5)


@pytest.mark.slow
@given(batches(), st.data())
def test_micro_batches_in_any_order_are_the_same_as_one(batch, data):
    groups, now = batch
    whole = Batch(groups, CLIP)
    parts = Batch(groups, CLIP)
    expected = whole.derivative(range(len(whole.rows)), now)
    ends = np.cumsum([mask.sum() for mask in whole.trained])[:-1]
    of_row = np.split(expected, ends)
    now_of_row = np.split(now, ends)
    for place in data.draw(st.permutations(range(len(whole.rows)))):
        got = parts.derivative([place], now_of_row[place])
        np.testing.assert_allclose(got, of_row[place])
    for name, value in dataclasses.asdict(whole.measures()).items():
        assert getattr(parts.measures(), name) == pytest.approx(value)


@pytest.mark.slow
@given(st.lists(st.floats(0, 1, allow_subnormal=False), min_size=2, max_size=8))
def test_advantages_are_normalised_within_the_group(scores):
    values = advantages(group_of(scores).scores)
    assert values.mean() == pytest.approx(0, abs=1e-6)
    assert values.std(ddof=1) == pytest.approx(1) or not values.any()


def test_a_rollout_without_a_score_counts_for_nothing():
    values = advantages(np.array([1.0, np.nan, 0.0]))
    assert values.tolist() == [pytest.approx(0.5**0.5), 0, pytest.approx(-(0.5**0.5))]
    assert not advantages(np.array([np.nan, 1.0])).any()


def test_a_truncated_rollout_counts_for_the_mean_of_its_group_and_is_not_trained_on():
    group = group_of([1, 0, 0], [True, False, False])
    whole = group_of([1, 0, 0])
    batch = Batch([group])
    assert batch.rows == group.tokens[1:]
    assert batch.tokens == sum(mask.sum() for mask in group.trained[1:])
    now = sampled([whole])[group.trained[0].sum() :]
    got = batch.derivative([0, 1], now) * batch.tokens
    of_row = np.repeat(
        advantages(whole.scores)[1:], [m.sum() for m in group.trained[1:]]
    )
    np.testing.assert_allclose(got, -of_row)
    found = batch.measures()
    assert found.truncated == pytest.approx(1 / 3)
    assert found.reward == pytest.approx(1 / 3)


@pytest.mark.parametrize("away", [2 * CLIP, -2 * CLIP])
def test_the_clip_ends_only_what_leads_further_away(away):
    groups = [group_of([0, 1])]
    batch = Batch(groups, CLIP)
    derivative = batch.derivative([0, 1], sampled(groups) + np.log1p(away))
    first = groups[0].trained[0].sum()
    bad = derivative[:first].any()
    good = derivative[first:].any()
    assert (bad, good) == ((True, False) if away > 0 else (False, True))
    assert 0 < batch.measures().clipped < 1
