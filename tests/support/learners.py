"""Simulated learners for the curriculum and the adaptive choice of tasks.

No model is queried: a learner is a curve from level to accuracy, and the scores
of a group are drawn from it, right or wrong. The controllers are the real ones. A
result arrives after so many groups of the task have been sampled ("in flight": 1 when a
hundred tasks share the run, all of them when the run has one task).
"""

import dataclasses
import math
import random
import statistics
from collections import deque
from typing import NamedTuple

from rg_env.stream.adaptive_weights import AdaptiveWeights
from rg_env.stream.curriculum import TaskHistory

BAND = 0.05
WINDOW = 100
WINDOWS = 6
ROUNDS = 8
TASK = "task"

TASKS = 105
RUN_IN_FLIGHT = 128


def logistic(x):
    return 1 / (1 + math.exp(-x))


@dataclasses.dataclass(frozen=True)
class Learner:
    """A simulated learner of one task.

    `mixture` gives, for a level and a group number, the accuracies of the steps that an
    item of this level may fall on, each with its probability.
    """

    name: str
    mixture: object

    def accuracy(self, level, number):
        return sum(p * share for p, share in self.mixture(level, number))

    def group_mean(self, level, number, size, rng):
        """Draw the mean score of a group; its rollouts share the item's step."""
        steps = self.mixture(level, number)
        (p,) = rng.choices([p for p, _ in steps], [share for _, share in steps])
        return sum(rng.random() < p for _ in range(size)) / size


def sloped(name, middle, slope, gain=0.0):
    """Return a learner who is right half of the time at the level `middle`.

    It moves upwards by `gain` a group, to 0.9 at most.
    """

    def mixture(level, number):
        now = min(middle + gain * number, 0.9)
        return [(logistic(slope * (now - level)), 1.0)]

    return Learner(name, mixture)


def stepped(name, *accuracies):
    """Return a learner with one accuracy a step; levels between two steps mix them."""

    def mixture(level, number):
        place = level * (len(accuracies) - 1)
        below = min(int(place), len(accuracies) - 2)
        share = place - below
        return [(accuracies[below], 1 - share), (accuracies[below + 1], share)]

    return Learner(name, mixture)


LEARNERS = (
    sloped("weak", 0.25, 8),
    sloped("middling", 0.5, 8),
    sloped("strong, steep slope", 0.9, 16),
    sloped("middling, cliff", 0.5, 40),
    stepped("two steps, weak", 0.9, 0.0),
    stepped("four steps", 1.0, 0.9, 0.4, 0.1),
    sloped("improving over 500", 0.1, 9, 0.8 / 500),
)


class Trace(NamedTuple):
    """Groups until the target was reached, and the distance of each window's mean."""

    reached: object
    off: list


def run_task(
    controller,
    learner,
    target,
    group_size,
    in_flight,
    rng,
):
    progress = TaskHistory({}, {}, {}, {})
    sampled = deque()
    scores, reached = [], None
    settling = WINDOW + ROUNDS * in_flight
    for number in range(settling + WINDOWS * WINDOW + in_flight - 1):
        level = controller.level_of(TASK)
        if reached is None and abs(learner.accuracy(level, number) - target) <= BAND:
            reached = len(scores)
        sampled.append((number, level))
        if len(sampled) < in_flight:
            continue
        made, made_level = sampled.popleft()
        scores.append(learner.group_mean(made_level, made, group_size, rng))
        progress.record_group(TASK, scores[-1], made_level)
        controller.follow(TASK, progress)
    starts = range(settling, settling + WINDOWS * WINDOW, WINDOW)
    means = [statistics.fmean(scores[start : start + WINDOW]) for start in starts]
    return Trace(reached, [abs(mean - target) for mean in means])


def run_training(steepness, groups, is_adaptive, seed):
    """Return the share of zero-variance groups of a run over many tasks.

    The skill rises evenly from -3.5 to 3.5, the tasks' difficulties lie between -3 and
    3, and the accuracy of an item is logistic in their difference. Tasks are drawn by
    adaptive weights, or evenly.
    """
    rng = random.Random(seed)
    difficulty = {f"task {n}": rng.uniform(-3, 3) for n in range(TASKS)}
    tasks = list(difficulty)
    weights = AdaptiveWeights()
    pending = deque()
    zero_variance = 0
    for number in range(groups):
        drawn = [weights.weight_of(task) for task in tasks] if is_adaptive else None
        (task,) = rng.choices(tasks, drawn)
        skill = -3.5 + 7 * number / groups
        p = logistic(steepness * (skill - difficulty[task]))
        has_variance = 0 < sum(rng.random() < p for _ in range(8)) < 8
        zero_variance += not has_variance
        pending.append((task, has_variance))
        if len(pending) >= RUN_IN_FLIGHT:
            weights.record(*pending.popleft())
    return zero_variance / groups
