"""Means with intervals, and pass@k."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rg_env.evaluation.statistics import best_of, difference, estimate

SCORES = st.lists(
    st.tuples(st.floats(0, 1, allow_subnormal=False), st.integers(0, 5)),
    min_size=1,
    max_size=40,
)


@pytest.mark.slow
@given(SCORES)
def test_an_interval_holds_its_mean_and_stays_in_0_to_1(rows):
    found = estimate(*map(list, zip(*rows, strict=True)))
    assert 0 <= found.low <= found.mean + 1e-12
    assert found.mean - 1e-12 <= found.high <= 1


def test_scores_that_are_all_equal_leave_an_interval_of_some_width():
    found = estimate([1.0] * 5, range(5))
    assert (found.high, round(found.low, 2)) == (1.0, 0.57)


def test_completions_of_one_item_that_are_alike_count_once():
    scores, items = [0.0, 1.0] * 20, list(range(40))
    once = estimate(scores, items)
    thrice = estimate(
        [s for s in scores for _ in range(3)], [i for i in items for _ in range(3)]
    )
    assert (thrice.low, thrice.high) == pytest.approx((once.low, once.high))


def test_an_interval_covers_the_mean_nineteen_times_of_twenty():
    rng, covered = random.Random(1), 0
    for _ in range(400):
        chances = [rng.random() for _ in range(40)]
        rows = [
            (float(rng.random() < p), i)
            for i, p in enumerate(chances)
            for _ in range(4)
        ]
        found = estimate(*map(list, zip(*rows, strict=True)))
        covered += found.low <= 0.5 <= found.high
    assert 0.92 <= covered / 400 <= 0.985


def test_an_interval_for_these_tasks_covers_their_mean_nineteen_times_of_twenty():
    rng, covered, widths = random.Random(1), 0, [0.0, 0.0]
    for _ in range(400):
        chances = [rng.choice([0.05, 0.2, 0.9]) for _ in range(20)]
        rows = [
            (float(rng.random() < p), (task, i), task)
            for task, p in enumerate(chances)
            for i in range(8)
        ]
        scores, items, tasks = map(list, zip(*rows, strict=True))
        found, wide = estimate(scores, items, tasks), estimate(scores, items)
        covered += found.low <= sum(chances) / 20 <= found.high
        widths = [widths[0] + found.high - found.low, widths[1] + wide.high - wide.low]
    assert 0.92 <= covered / 400 <= 0.975
    assert widths[0] < 0.8 * widths[1]


@pytest.mark.parametrize("of", [estimate, difference])
def test_tasks_of_one_item_have_the_spread_that_lies_between_them(of):
    values = [0.0, 0.5, 1.0, 0.25]
    assert of(values, range(4), range(4)) == of(values, range(4))


def test_the_spread_between_tasks_is_none_of_an_interval_for_them():
    values, items, tasks = [0.0, 0.1, 0.9, 1.0], range(4), ["a", "a", "b", "b"]
    found = difference(values, items, tasks)
    # Two tasks add 2 * 2 * 0.05^2 each; 4.30 is the quantile of two degrees.
    assert found.high - 0.5 == pytest.approx(4.30 * 0.02**0.5 / 4, rel=0.05)
    assert difference(values, items).high == 1.0


def test_a_difference_of_one_cluster_says_nothing():
    found = difference([0.2, 0.3], ["gcd", "gcd"])
    assert (found.low, found.high) == (-1.0, 1.0)


def test_few_clusters_widen_the_interval_of_a_difference_as_students_t_does():
    # 0.1 +- 2.776 * 0.0707: the quantile of four degrees of freedom.
    found = difference([0.3, 0.2, 0.1, 0.0, -0.1], range(5))
    assert found.high - found.mean == pytest.approx(2.776 * 0.0707107, rel=0.01)


@pytest.mark.parametrize(
    ("right", "n", "k"), [(0, 4, 2), (1, 4, 2), (3, 4, 2), (2, 5, 3)]
)
def test_pass_at_k_is_the_share_of_draws_with_a_right_one(right, n, k):
    scores = [1.0] * right + [0.0] * (n - right)
    draws = list(itertools.combinations(scores, k))
    assert best_of(scores, k) == pytest.approx(sum(map(any, draws)) / len(draws))


def test_the_best_of_k_is_the_mean_of_the_best_of_all_draws():
    scores = [0.1, 0.8, 0.0, 0.8, 1.0]
    draws = list(itertools.combinations(scores, 3))
    assert best_of(scores, 3) == pytest.approx(sum(map(max, draws)) / len(draws))


@pytest.mark.parametrize("k", [0, 4])
def test_the_best_of_k_of_fewer_completions_is_refused(k):
    with pytest.raises(ValueError, match="3 completions"):
        best_of([1.0, 0.0, 0.0], k)


def test_no_scores_have_no_mean():
    with pytest.raises(ValueError, match="no scores"):
        estimate([], [])
