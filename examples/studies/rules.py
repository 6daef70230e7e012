"""Rules of others for what comes next, each behind `next` and `took`.

A rule has places, which are a task and a level each, in the order of their difficulty.
It is asked for the place of each group of a round, and is then told the values of each.
Where a source has its rule for single questions, places take their part.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict, deque
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Final

Place = tuple[str, float | None]


class Uniform:
    """All places are equally likely."""

    def __init__(self, places: Sequence[Place], luck: random.Random) -> None:
        self.places: Final = list(places)
        self.luck: Final = luck

    def weights(self) -> list[float]:
        """Return how likely each place is, as parts of any sum."""
        return [1.0] * len(self.places)

    def next(self) -> Place:
        """Return the place of the next group."""
        return self.luck.choices(self.places, self.weights())[0]

    def took(self, place: Place, values: Sequence[float]) -> None:
        """Take the values of a group, in [0, 1], at least one."""


class UpAndDown(Uniform):
    """One level, up where the newest scores have a mean above `UP`, down below `DOWN`.

    Source: reasoning-gym 49b0713, training/trainers/ray_grpo_trainer.py and
    configs/curriculum/knights_knaves_curriculum.yaml; differs: the newest 384 scores
    count, since its 2,560 of 76,800 are as large a share of a run.
    """

    UP = 0.7
    DOWN = 0.3
    NEWEST = 384

    def __init__(self, places: Sequence[Place], luck: random.Random) -> None:
        super().__init__(places, luck)
        self.at = 0
        self.scores = deque[float](maxlen=self.NEWEST)

    def weights(self) -> list[float]:
        """Return those that leave the level in force alone."""
        return [float(number == self.at) for number in range(len(self.places))]

    def took(self, place: Place, values: Sequence[float]) -> None:
        """Count the scores of the level in force; a new one begins without any."""
        if place != self.places[self.at]:
            return
        self.scores.extend(values)
        mean = fmean(self.scores)
        if len(self.scores) == self.NEWEST and not self.DOWN <= mean <= self.UP:
            step = 1 if mean > self.UP else -1
            self.at = min(max(self.at + step, 0), len(self.places) - 1)
            self.scores.clear()


class Window(Uniform):
    """The `WIDTH` levels up to a bound, which rises where it is mastered.

    Source: RLVE 73cccd9, slime/ray/rollout_data_source.py and slime/utils/arguments.py;
    differs: it looks after each group, as its version for Tinker does.
    """

    WIDTH = 4
    MASTERED = 0.9
    GROUPS = 8

    def __init__(self, places: Sequence[Place], luck: random.Random) -> None:
        super().__init__(places, luck)
        self.bound = 0
        self.means = list[float]()

    def weights(self) -> list[float]:
        """Return those of the window."""
        window = range(self.bound - self.WIDTH + 1, self.bound + 1)
        return [float(number in window) for number in range(len(self.places))]

    def took(self, place: Place, values: Sequence[float]) -> None:
        """Count the groups at the bound; eight decide, and are forgotten."""
        if place != self.places[self.bound]:
            return
        self.means.append(fmean(values))
        if len(self.means) >= self.GROUPS:
            rises = fmean(self.means) >= self.MASTERED
            self.bound = min(self.bound + rises, len(self.places) - 1)
            self.means.clear()


class Pools(Uniform):
    """The newest mean of a place puts it into a pool, whose weight it has.

    Source: prime-rl 559b447, orchestrator/curriculum/samplers/pool.py and the default
    pools in configs/orchestrator.py; differs: none.
    """

    POOLS = ((0.25, 0.2), (0.75, 1.0), (1.0, 0.2))
    """Hard, normal and easy: the highest mean, and the weight."""

    def __init__(self, places: Sequence[Place], luck: random.Random) -> None:
        super().__init__(places, luck)
        self.means: dict[Place, float] = {}

    def weights(self) -> list[float]:
        """Return those of the pools, and 1.0 before the first group of a place."""
        means = [self.means.get(place) for place in self.places]
        return [
            1.0 if mean is None else next(w for most, w in self.POOLS if mean <= most)
            for mean in means
        ]

    def took(self, place: Place, values: Sequence[float]) -> None:
        """Keep the mean."""
        self.means[place] = fmean(values)


class Variance(Uniform):
    """Places are as likely as the variance p (1 - p) of what they pay.

    Source: "Learning to reason at the frontier of learnability" (arXiv 2502.12272);
    differs: p is that of the newest 64 values and of one right and one wrong one more,
    where the source asks every candidate again.
    """

    NEWEST = 64

    def __init__(self, places: Sequence[Place], luck: random.Random) -> None:
        super().__init__(places, luck)
        self.values = {place: deque[float](maxlen=self.NEWEST) for place in places}

    def weights(self) -> list[float]:
        """Return p (1 - p) of each place."""
        shares = [(1 + sum(v)) / (2 + len(v)) for v in self.values.values()]
        return [share * (1 - share) for share in shares]

    def took(self, place: Place, values: Sequence[float]) -> None:
        """Keep the values."""
        self.values[place].extend(values)


class Bandit(Uniform):
    """Places whose advantages have been large are likelier (SEC).

    Source: "Self-evolving curriculum for LLM reasoning" (arXiv 2505.14970), with the
    rate and the temperatures of its commands: 1.0 for levels of one task, 0.2 for
    several tasks; differs: none from its equation, by which a place that is in no group
    of a round keeps its value, while its program lets that fall.
    """

    RATE = 0.5
    OF_LEVELS = 1.0
    OF_TASKS = 0.2

    def __init__(self, places: Sequence[Place], luck: random.Random) -> None:
        super().__init__(places, luck)
        several = len({task for task, _ in places}) > 1
        self.temperature = self.OF_TASKS if several else self.OF_LEVELS
        self.worth = dict.fromkeys(places, 0.0)
        self.round = defaultdict[Place, list[float]](list)

    def weights(self) -> list[float]:
        """Return Boltzmann's weights, with what the last round has been worth."""
        for place, sizes in self.round.items():
            change = fmean(sizes) - self.worth[place]
            self.worth[place] += self.RATE * change
        self.round.clear()
        return [math.exp(worth / self.temperature) for worth in self.worth.values()]

    def took(self, place: Place, values: Sequence[float]) -> None:
        """Keep the mean absolute advantage of a group until the round has ended."""
        mean = fmean(values)
        spread = stdev(values) if len(values) > 1 else 0.0
        sizes = [abs(value - mean) for value in values]
        self.round[place].append(fmean(sizes) / spread if spread else 0.0)


RULES: dict[str, type[Uniform]] = {
    "uniform": Uniform,
    "library": UpAndDown,
    "rlve": Window,
    "pools": Pools,
    "variance": Variance,
    "sec": Bandit,
}
