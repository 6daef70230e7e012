"""Means, intervals, differences and pass@k of the parts of a table of samples."""

import itertools
import math
import random
from collections import defaultdict
from statistics import fmean

import polars as pl
import pytest

from rg_env.results.estimates import (
    OVERALL,
    best_of_k,
    estimate_differences,
    estimate_means,
    estimate_share,
    measure_parts,
    row_of,
    table_of,
    with_parts,
)
from rg_env.results.samples import Sample


def sample(score, question="q", task="t"):
    return Sample(task, "c", question, score, "right")


def samples_of(*scores_by_item):
    """Return samples of a task from a score, or a list of scores, for each item."""
    lists = [s if isinstance(s, list) else [s] for s in scores_by_item]
    return [sample(score, str(n)) for n, scores in enumerate(lists) for score in scores]


def table(*results):
    rows = (row_of(s, n) for n, samples in enumerate(results) for s in samples)
    return with_parts(table_of(rows))


def interval(samples, **how):
    return estimate_means(table(samples), **how)[OVERALL]


# -- intervals -------------------------------------------------------------------------


def plain_variance(samples):
    """Return the variance of the mean, with each task as a stratum, and its freedom."""
    tasks = defaultdict(lambda: defaultdict(list))
    for s in samples:
        tasks[s.task][s.question].append(s.score)
    strata = [[*items.values()] for items in tasks.values() if len(items) > 1]
    single = [*itertools.chain(*(i.values() for i in tasks.values() if len(i) == 1))]
    strata += [single] if single else []
    mean = fmean(s.score for s in samples)
    squares = 0.0
    for items in strata:
        n = len(items)
        center = fmean(itertools.chain(*items)) if n > 1 else mean
        deviations = sum((sum(item) - len(item) * center) ** 2 for item in items)
        squares += deviations * n / max(1, n - 1)
    return squares / len(samples) ** 2, sum(map(len, strata)) - len(strata)


STUDENT = {3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}
"""Degrees of freedom to the 97.5 % quantile, as tables have it."""


@pytest.mark.parametrize("seed", range(4))
def test_each_part_has_the_clustered_variance_within_its_tasks(seed):
    rng = random.Random(seed)
    samples = [
        sample(rng.choice([0.0, 0.5, 1.0]), str(rng.randrange(4)), f"t{number % 5}")
        for number in range(12)
    ]
    found = estimate_means(table(samples), within=(-9.0, 9.0))
    for (kind, name), estimate in found.items():
        part = [s for s in samples if kind != "task" or s.task == name]
        assert estimate.mean == pytest.approx(fmean(s.score for s in part), abs=1e-12)
        variance, freedom = plain_variance(part)
        if freedom in STUDENT:
            half = (estimate.high - estimate.low) / 2
            expected = STUDENT[freedom] * math.sqrt(variance)
            assert half == pytest.approx(expected, rel=0.01)


def test_an_interval_by_task_covers_the_mean_nineteen_times_of_twenty():
    rng = random.Random(1)
    covered = 0
    for _ in range(150):
        chances = [rng.random() for _ in range(40)]
        samples = [
            sample(float(rng.random() < chance), task=f"{task}")
            for task, chance in enumerate(chances)
            for _ in range(4)
        ]
        found = interval(samples, clusters="task")
        covered += found.low <= 0.5 <= found.high
    assert 0.9 <= covered / 150 <= 0.99


def test_the_interval_of_equal_scores_is_that_of_wilson():
    found = interval(samples_of(*[0.0] * 10))
    assert (found.low, found.high) == (0, pytest.approx(0.2775, abs=1e-4))


@pytest.mark.parametrize("scores", [(0.0, 1.0, 1.0), (1.0,), (0.0, 0.0)])
def test_a_share_of_independent_things_is_that_of_a_table(scores):
    found = estimate_share(int(sum(scores)), len(scores))
    assert vars(found) == pytest.approx(vars(interval(samples_of(*scores))), abs=1e-12)


# -- k completions ---------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 3, 6])
def test_the_best_of_k_is_the_mean_of_the_best_of_all_draws(k):
    scores = [0.1, 0.8, 0.0, 0.8, 1.0]
    draws = [*map(max, itertools.combinations(scores, k))]
    found = pl.DataFrame({"v": scores}).select(best_of_k(pl.col("v"), k)).item()
    assert found == (pytest.approx(fmean(draws)) if draws else None)


def test_the_best_of_thousands_takes_no_longer_than_of_a_few():
    scores = [0.0] * 15_999 + [1.0]
    found = pl.DataFrame({"v": scores}).select(best_of_k(pl.col("v"), 12_000)).item()
    assert found == pytest.approx(0.75)


def test_the_best_of_k_is_of_the_items_that_have_k_completions():
    found = measure_parts(table(samples_of([0.0, 0.5], [0.0, 1.0], 1.0)), k=2)[OVERALL]
    assert (found["best_of_k"].mean, found["pass_at_k"].mean) == (0.75, 0.5)
    assert (found["items"], found["completions"]) == (3, 5)


# -- differences -----------------------------------------------------------------------


def test_a_difference_is_of_the_mean_of_each_item_that_both_have():
    first = samples_of(0.0, [0.5, 0.0, 1.0], 1.0, None)
    second = samples_of(None, 1.0, 1.0, 1.0, 1.0)
    found = estimate_differences(table(first, second), 0, 1)[OVERALL]
    assert (found.mean, found.samples) == (0.25, 2)
    assert (found.low, found.high) == (-1, 1)


@pytest.mark.parametrize("seed", range(3))
def test_a_difference_is_the_opposite_of_that_of_swapped_results(seed):
    rng = random.Random(seed)
    first, second = (
        [
            sample(rng.choice([0.0, 0.5, 1.0, None]), str(n % 4), f"t{n % 3}")
            for n in range(18)
        ]
        for _ in range(2)
    )
    samples = table(first, second)
    there = estimate_differences(samples, 0, 1)
    back = estimate_differences(samples, 1, 0)
    assert len(there) > 4 and there.keys() == back.keys()
    for part, found in there.items():
        swapped = back[part]
        opposite = (-swapped.mean, -swapped.high, -swapped.low)
        assert opposite == pytest.approx((found.mean, found.low, found.high))
