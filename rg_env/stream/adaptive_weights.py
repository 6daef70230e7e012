"""Adaptive weights: tasks whose groups have no reward variance are seldom drawn.

A trainer learns nothing from a group of equal scores. So each task has an estimate of
the share of its groups that have reward variance. The estimate begins at 1, and the
weight of the task in the settings is multiplied by

    floor + (1 - floor) * estimate

docs/measurements.md has the results of simulated learners with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

# The smallest factor of a weight, so that renewed variance is noticed.
FLOOR = 0.03
# The weight of the old estimate after one group. With more, tasks that were never or
# always solved were sampled for long; with much less, tasks with variance were left
# too early.
MEMORY = 0.5


class WeightsState(msgspec.Struct):
    """The estimate of each task that had a group."""

    signal: dict[str, Annotated[float, msgspec.Meta(ge=0, le=1)]]


class AdaptiveWeights:
    """Factors of the weights of tasks; the floor is in (0, 1].

    Example:
        >>> weights = AdaptiveWeights(floor=0.1)
        >>> weights.record("gcd", has_variance=False)
        >>> weights.factor_of("gcd")
        0.55
    """

    def __init__(self, floor: float = FLOOR) -> None:
        self._floor = floor
        self._estimates: dict[str, float] = {}

    def record(self, task: str, has_variance: bool) -> None:
        """Add one group of a task."""
        before = self._estimates.get(task, 1.0)
        self._estimates[task] = MEMORY * before + (1 - MEMORY) * has_variance

    def factor_of(self, task: str) -> float:
        """Return the factor of a task, in [floor, 1]; 1 before its first group."""
        return self._floor + (1 - self._floor) * self._estimates.get(task, 1.0)

    def state_dict(self) -> dict[str, Any]:
        """Return the state as plain values."""
        return {"signal": dict(sorted(self._estimates.items()))}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state; an invalid one raises ValueError, with no change."""
        self._estimates = msgspec.convert(state, WeightsState).signal
