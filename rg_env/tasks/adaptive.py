"""Which tasks are worth sampling: weights that follow the variance of rewards.

A group whose scores are all equal teaches a trainer nothing. Here each task has an
estimate of the fraction of its groups that have reward variance, and its weight is
that of the settings times

    floor + (1 - floor) * estimate

The estimate begins at 1, and each group replaces half of it. In a simulation of a
learner that improves (docs/measurements.md), a longer memory kept sampling tasks that
were never or always solved, and a much shorter one abandoned tasks with variance too
early. Because of the floor, every task still gets some groups, so renewed variance is
noticed.

The weights change through `record` and loading alone; nothing is drawn here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from rg_env.tasks.task_history import Share

FLOOR = 0.03
"""The share of its weight that a task without any signal keeps, by default."""

MEMORY = 0.5
"""What one group leaves of the estimate before it."""


class WeightsState(msgspec.Struct):
    """The state of adaptive weights: the signal of each task."""

    signal: dict[str, Share]


class AdaptiveWeights:
    """What the weights of tasks are multiplied by, for the variance of their groups.

    Args:
        floor: The share of its weight that a task without any signal keeps, in (0, 1].

    Raises:
        ValueError: The floor is out of range.
    """

    def __init__(self, tasks: Iterable[str], floor: float = FLOOR) -> None:
        if not 0 < floor <= 1:
            raise ValueError(f"the floor must be in (0, 1], found {floor!r}")
        self._floor = floor
        self._signal = dict.fromkeys(tasks, 1.0)

    def record(self, task: str, has_variance: bool) -> None:
        """Add one group of a task."""
        self._signal[task] = MEMORY * self._signal[task] + (1 - MEMORY) * has_variance

    def weight_of(self, task: str) -> float:
        """Return a task's factor, in [floor, 1]."""
        return self._floor + (1 - self._floor) * self._signal[task]

    def state_dict(self) -> dict[str, Any]:
        """Return the state as plain values; the floor is a setting."""
        return {"signal": dict(self._signal)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over a state; ValueError, and no change, if it has another form."""
        signal = msgspec.convert(state, WeightsState).signal
        if signal.keys() != self._signal.keys():
            different = sorted(signal.keys() ^ self._signal.keys())
            raise ValueError(f"adaptive weights are of other tasks: {different}")
        self._signal = {task: signal[task] for task in self._signal}
