"""Simulated learners for the curriculum and the adaptive choice of tasks.

No model is queried: a learner is a curve from level to accuracy, and the scores
of a group are drawn from it, right or wrong. The controllers are the real ones. A
result arrives after so many groups of the task have been sampled ("in flight": 1 when a
hundred tasks share the run, all of them when the run has one task).
"""

import math
import random
import statistics
from collections import deque

from rg_env.stream.adaptive_weights import AdaptiveWeights
from rg_env.stream.curriculum import Curriculum, TaskHistory

TARGET = 0.7
BAND = 0.05
GROUP_SIZE = 8
WINDOW = 100
WINDOWS = 6
ROUNDS = 8
TASK = "task"

TASKS = 105
GROUPS = 32_000
RUN_IN_FLIGHT = 128
STEEPNESS = 2


def logistic(x):
    return 1 / (1 + math.exp(-x))


def sloped(middle, slope, gain=0.0):
    """Return a learner who is right half of the time at the level `middle`.

    It moves upwards by `gain` a group, to 0.9 at most.
    """

    def mixture(level, number):
        now = min(middle + gain * number, 0.9)
        return {logistic(slope * (now - level)): 1.0}

    return mixture


def stepped(*accuracies):
    """Return a learner with one accuracy a step; levels between two steps mix them."""

    def mixture(level, number):
        place = level * (len(accuracies) - 1)
        below = min(int(place), len(accuracies) - 2)
        share = place - below
        return {accuracies[below]: 1 - share, accuracies[below + 1]: share}

    return mixture


IMPROVING = "improving over 500"
LEARNERS = {
    "weak": sloped(0.25, 8),
    "middling": sloped(0.5, 8),
    "strong, steep slope": sloped(0.9, 16),
    "middling, cliff": sloped(0.5, 40),
    "two steps, weak": stepped(0.9, 0.0),
    "four steps": stepped(1.0, 0.9, 0.4, 0.1),
    IMPROVING: sloped(0.1, 9, 0.8 / 500),
}
"""Learners of one task: from a level and the number of a group to the accuracies of the
steps that an item of this level may fall on, each with its probability."""


def scores(chance, rng):
    """Return how many completions of a group are right."""
    return sum(rng.random() < chance for _ in range(GROUP_SIZE))


def run_task(learner, in_flight):
    """Have the curriculum bring a learner to its target.

    Return after how many groups it is there, and the distance of each window's mean.
    """
    rng = random.Random(1)
    controller = Curriculum(TARGET)
    progress = TaskHistory({}, {}, {}, {})
    sampled = deque()
    means = []
    reached = math.inf
    settling = WINDOW + ROUNDS * in_flight
    for number in range(settling + WINDOWS * WINDOW + in_flight - 1):
        level = controller.level_of(TASK)
        steps = learner(level, number)
        accuracy = sum(p * share for p, share in steps.items())
        if abs(accuracy - TARGET) <= BAND:
            reached = min(reached, len(means))
        sampled.append((number, level))
        if len(sampled) < in_flight:
            continue
        made, made_level = sampled.popleft()
        steps = learner(made_level, made)
        (chance,) = rng.choices([*steps], [*steps.values()])
        means.append(scores(chance, rng) / GROUP_SIZE)
        progress.record_group(TASK, means[-1], made_level, True)
        controller.follow(TASK, progress)
    starts = range(settling, settling + WINDOWS * WINDOW, WINDOW)
    windows = [statistics.fmean(means[start : start + WINDOW]) for start in starts]
    return reached, [abs(mean - TARGET) for mean in windows]


def run_training(is_adaptive):
    """Return the share of zero-variance groups of a run over many tasks.

    The skill rises evenly from -3.5 to 3.5, the tasks' difficulties lie between -3 and
    3, and the accuracy of an item is logistic in their difference. Tasks are drawn by
    adaptive weights, or evenly.
    """
    rng = random.Random(1)
    difficulty = {f"task {n}": rng.uniform(-3, 3) for n in range(TASKS)}
    tasks = list(difficulty)
    weights = AdaptiveWeights()
    pending = deque()
    zero_variance = 0
    for number in range(GROUPS):
        drawn = [weights.factor_of(task) for task in tasks] if is_adaptive else None
        (task,) = rng.choices(tasks, drawn)
        skill = -3.5 + 7 * number / GROUPS
        chance = logistic(STEEPNESS * (skill - difficulty[task]))
        has_variance = 0 < scores(chance, rng) < GROUP_SIZE
        zero_variance += not has_variance
        pending.append((task, has_variance))
        if len(pending) >= RUN_IN_FLIGHT:
            weights.record(*pending.popleft())
    return zero_variance / GROUPS
