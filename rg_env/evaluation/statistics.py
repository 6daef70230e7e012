"""Means of scores with intervals that know which samples belong together. Pure.

Samples of one item, or items of one task, are alike: an interval that takes them for
independent is too narrow. The standard error is the clustered one, as "Adding error
bars to evals" (Miller, 2024) has it, with the factor C / (C - 1) for few clusters C.

An interval for exactly these tasks does not include the differences between their
means: each task is a stratum with its own mean, number of clusters and factor. Tasks
with only one item tell nothing about the spread within a task, so together they form
one stratum.

An interval of a mean is Wilson's at 95 %, for as many independent samples as would have
that standard error: it stays in [0, 1]. Where all scores are equal it is that of C
samples. One of a difference is Student's. Both have as many degrees of freedom as there
are clusters more than strata.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import chain
from typing import TypeVar

Z_95 = 1.959963984540054

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A mean with its 95 % interval.

    Attributes:
        mean: Of all samples; in [0, 1], a difference in [-1, 1].
        samples: That the mean is of.
        clusters: That are taken as independent.
    """

    mean: float
    low: float
    high: float
    samples: int
    clusters: int

    def interval(self, digits: int = 3, *, of: int = 1) -> str:
        """Return the interval as every table has it; `of` 100 gives percent."""
        return f"{of * self.low:.{digits}f} to {of * self.high:.{digits}f}"


def _student_95(freedom: int) -> float:
    """Return Student's 97.5 % quantile, within 0.02 from three degrees of freedom on.

    Source: Abramowitz and Stegun, 26.7.5; scipy would be 40 MB for this one number.
    """
    z = Z_95
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + math.fsum(term / freedom**i for i, term in enumerate(terms, 1))


def _clustered(
    values: Sequence[float],
    clusters: Sequence[Hashable],
    strata: Sequence[Hashable] | None,
) -> tuple[float, float, int, int]:
    """Return mean, variance of the mean, number of clusters, degrees of freedom."""
    n = len(values)
    if not n:
        raise ValueError("no scores to estimate from")
    mean = math.fsum(values) / n
    found: dict[Hashable, dict[Hashable, list[float]]] = {}
    rows = zip(strata or [None] * n, clusters, values, strict=True)
    for stratum, cluster, value in rows:
        found.setdefault(stratum, {}).setdefault(cluster, []).append(value)
    parts = [[*of.values()] for of in found.values() if len(of) > 1]
    if alone := [*chain(*(of.values() for of in found.values() if len(of) == 1))]:
        parts.append(alone)
    squares = math.fsum(_squares(part, mean) for part in parts)
    count = sum(map(len, parts))
    return mean, squares / n**2, count, count - len(parts)


def _squares(clusters: Sequence[Sequence[float]], mean: float) -> float:
    """Return what a stratum adds to the variance; one cluster lies off the mean."""
    found = len(clusters)
    if found > 1:
        mean = statistics.fmean(chain(*clusters))
    off = math.fsum((math.fsum(of) - len(of) * mean) ** 2 for of in clusters)
    return off * (found / (found - 1) if found > 1 else 1.0)


def estimate(
    scores: Sequence[float],
    clusters: Sequence[Hashable],
    strata: Sequence[Hashable] | None = None,
) -> Estimate:
    """Return the mean of scores in [0, 1] with its interval.

    Args:
        scores: Shape (N,).
        clusters: Of each score, what it shares with those that are like it, shape (N,).
        strata: Of each score, the part that is no sample of parts like it, shape (N,).

    Raises:
        ValueError: There are no scores.
    """
    mean, variance, found, freedom = _clustered(scores, clusters, strata)
    n, z = float(found), Z_95
    # Rounding leaves a little variance where all scores are equal.
    if variance > 1e-12:
        n, z = mean * (1 - mean) / variance, _student_95(freedom)
    centre = (mean + z**2 / (2 * n)) / (1 + z**2 / n)
    half = (z / (1 + z**2 / n)) * math.sqrt(mean * (1 - mean) / n + z**2 / (4 * n * n))
    # Rounding alone can put the mean of equal scores outside.
    low, high = min(mean, centre - half), max(mean, centre + half)
    return Estimate(mean, max(0.0, low), min(1.0, high), len(scores), found)


def difference(
    values: Sequence[float],
    clusters: Sequence[Hashable],
    strata: Sequence[Hashable] | None = None,
    *,
    within: tuple[float, float] = (-1.0, 1.0),
) -> Estimate:
    """Return the mean of paired differences with its interval.

    Args:
        values: One difference a pair, shape (N,); or other numbers that are no scores.
        clusters: Of each pair, shape (N,).
        strata: Of each pair, shape (N,).
        within: What values can be; all of the interval where there is one cluster.

    Raises:
        ValueError: There are no pairs.
    """
    mean, variance, found, freedom = _clustered(values, clusters, strata)
    low, high = within
    if found > 1:
        half = _student_95(freedom) * math.sqrt(variance)
        low, high = max(low, mean - half), min(high, mean + half)
    return Estimate(mean, low, high, len(values), found)


def best_of(scores: Sequence[float], k: int) -> float:
    """Return the expected best of k completions of an item, without bias.

    Of scores that are 0 or 1 it is pass@k, the chance that one of k is right.

    Args:
        scores: Of its completions, at least `k`.
        k: Completions that are drawn of them without replacement.

    Source: "Evaluating large language models trained on code" (Chen et al., 2021).
    """
    if not 0 < k <= len(scores):
        raise ValueError(f"the best of {k} of {len(scores)} completions")
    # The score at place i is the best one of comb(i, k - 1) of the draws.
    best = (math.comb(i, k - 1) * score for i, score in enumerate(sorted(scores)))
    return math.fsum(best) / math.comb(len(scores), k)


def grouped(
    things: Iterable[T], key: Callable[[T], Hashable]
) -> dict[Hashable, list[T]]:
    """Return things by what they share, in the order in which they come."""
    found: dict[Hashable, list[T]] = {}
    for thing in things:
        found.setdefault(key(thing), []).append(thing)
    return found
