"""What the protocol makes of the differences between two arms, one for each seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from statistics import fmean, stdev

MARGIN = 0.02
"""Arms whose difference is surely smaller are equal."""

CHANCE = 0.05
"""A verdict needs a p below this."""

T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""Student's t with 1, 2, ... degrees of freedom, for intervals at 95 %."""


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return that of a mean at 95 %; everything is possible with a single value."""
    if len(values) < 2:
        return -math.inf, math.inf
    width = T[len(values) - 2] * stdev(values) / math.sqrt(len(values))
    return fmean(values) - width, fmean(values) + width


def shown(values: Sequence[float]) -> str:
    """Return a mean with its interval."""
    if not values:
        return ""
    low, high = interval(values)
    return f"{fmean(values):.3f} ({low:.3f} to {high:.3f})"


def p_value(differences: Sequence[float]) -> float:
    """Return the share of all sign flips whose sum is as far from 0: exact."""
    size = abs(sum(differences)) - 1e-12
    flips = list(product((1, -1), repeat=len(differences)))
    sums = [sum(s * d for s, d in zip(f, differences, strict=True)) for f in flips]
    return sum(abs(one) >= size for one in sums) / len(sums)


def holm(chances: Sequence[float]) -> list[float]:
    """Return p values that are corrected for their number."""
    corrected = [0.0] * len(chances)
    highest = 0.0
    order = sorted(range(len(chances)), key=chances.__getitem__)
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, chances[place] * (len(chances) - rank)))
        corrected[place] = highest
    return corrected


def verdict(differences: Sequence[float], p: float) -> str:
    """Return the protocol's word for an arm, given its corrected p."""
    low, high = interval(differences)
    if -MARGIN <= low <= high <= MARGIN:
        return "equal"
    if p < CHANCE:
        return "better" if low + high > 0 else "worse"
    return "undecided"
