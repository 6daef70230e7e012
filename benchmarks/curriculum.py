"""The curriculum and the adaptive choice of tasks against simulated learners.

    python benchmarks/curriculum.py [--runs 10] [--seed 0] [--json FILE]

Nothing is asked of a model: a learner is a curve from level to accuracy, and the scores
of a group are drawn from it, right or wrong. The controllers are the real ones.

The first table is about one task. A result arrives after so many groups of the task
have been asked ("in flight": 1 when a hundred tasks share the run, all of them when the
run has one task). Shown are

- reached: scored groups until the level in force is one at which the learner is within
  0.05 of the target, median of the runs;
- off: how far the mean score of 100 groups lies from the target, mean over all windows
  of 100 groups that follow, the first 100 and eight rounds of the pipeline left out.

The second table sums up: runs that reached the target within 100 groups, and windows
that stayed within 0.05; beside it the original's law, which has steps of one size and
takes every result as one of the level in force. "Expected" is the same windows measured
by the learner's accuracy instead of by the scores drawn, without the luck of a window.

The third is about learners for whom no level brings the target. The fourth is a run
from weak to strong over many tasks of different difficulty: groups without a signal,
that is with all scores equal, by how tasks and levels are chosen.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import random
import statistics
import sys
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rg_env.tasks.adaptive import AdaptiveWeights
from rg_env.tasks.curriculum import Curriculum, LevelChange
from rg_env.tasks.task_history import TaskHistory

BAND = 0.05
WINDOW = 100
WINDOWS = 6
ROUNDS = 8
TASK = "task"

TASKS = 105
RUN_GROUPS = 32_000
"""What the default configuration asks: 250 steps of 1,024 sequences, 8 a group."""
RUN_IN_FLIGHT = 128


def logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x))


@dataclasses.dataclass(frozen=True)
class Learner:
    """A simulated learner of one task.

    Attributes:
        name: What it is, for the tables.
        mixture: Level and group number to the accuracies of the steps that an item of
            this level may fall on, each with its probability.
    """

    name: str
    mixture: Callable[[float, int], Sequence[tuple[float, float]]]

    def accuracy(self, level: float, number: int) -> float:
        """Return the expected score at a level."""
        return sum(p * share for p, share in self.mixture(level, number))

    def group_mean(
        self, level: float, number: int, size: int, rng: random.Random
    ) -> float:
        """Draw the mean score of a group; its rollouts share the item's step."""
        steps = self.mixture(level, number)
        (p,) = rng.choices([p for p, _ in steps], [share for _, share in steps])
        return sum(rng.random() < p for _ in range(size)) / size


def sloped(name: str, middle: float, slope: float) -> Learner:
    """Return a learner who is right half of the time at the level `middle`."""
    return Learner(name, lambda x, n: [(logistic(slope * (middle - x)), 1.0)])


def stepped(name: str, *accuracies: float) -> Learner:
    """Return a learner with one accuracy a step; levels between two steps mix them."""

    def mixture(level: float, number: int) -> list[tuple[float, float]]:
        place = level * (len(accuracies) - 1)
        below = min(int(place), len(accuracies) - 2)
        share = place - below
        return [(accuracies[below], 1 - share), (accuracies[below + 1], share)]

    return Learner(name, mixture)


def flat(name: str, height: float, begin: float, end: float) -> Learner:
    """Return a learner who is equally good from one level to another."""

    def accuracy(level: float) -> float:
        if level < begin:
            return 0.98 - (0.98 - height) * level / begin
        if level < end:
            return height
        return height - (height - 0.1) * (level - end) / (1 - end)

    return Learner(name, lambda x, n: [(accuracy(x), 1.0)])


def improving(name: str, groups: int) -> Learner:
    """Return a learner whose middle moves from 0.1 to 0.9 in so many groups."""

    def accuracy(level: float, number: int) -> float:
        middle = 0.1 + 0.8 * min(number / groups, 1)
        return logistic(9 * (middle - level))

    return Learner(name, lambda x, n: [(accuracy(x, n), 1.0)])


LEARNERS = (
    sloped("weak", 0.25, 8),
    sloped("middling", 0.5, 8),
    sloped("strong", 0.8, 8),
    sloped("middling, gentle slope", 0.6, 4),
    sloped("strong, steep slope", 0.9, 16),
    sloped("middling, cliff", 0.5, 40),
    stepped("two steps", 1.0, 0.2),
    stepped("two steps, weak", 0.9, 0.0),
    stepped("four steps", 1.0, 0.9, 0.4, 0.1),
    stepped("four steps, cliff", 1.0, 1.0, 0.0, 0.0),
    flat("plateau above 0.8", 0.87, 0.2, 0.7),
    flat("plateau below 0.7", 0.62, 0.2, 0.7),
    improving("improving over 1,500", 1500),
    improving("improving over 500", 500),
)

OUT_OF_REACH = (
    Learner("never right", lambda x, n: [(0.0, 1.0)]),
    Learner("too weak", lambda x, n: [(0.4 - 0.3 * x, 1.0)]),
    Learner("too strong", lambda x, n: [(0.98 - 0.1 * x, 1.0)]),
    Learner("always right", lambda x, n: [(1.0, 1.0)]),
)


class Controller(Protocol):
    """What moves a level."""

    def level_of(self, task: str) -> float: ...

    def update(self, task: str, progress: TaskHistory) -> LevelChange | None: ...


class OriginalLaw:
    """Steps of one size, every result taken as one of the level in force."""

    def __init__(self, target: float) -> None:
        self._target = target
        self._level = 0.3

    def level_of(self, task: str) -> float:
        return self._level

    def update(self, task: str, progress: TaskHistory) -> None:
        recent = list(progress.history[task])[-5:]
        accuracy = statistics.fmean(recent)
        if len(recent) < 3 or abs(accuracy - self._target) <= BAND:
            return
        factor = max(0.5, 1 - statistics.stdev(recent))
        is_easy = accuracy > 0.9 and self._level < 0.5
        is_hard = accuracy < 0.3 and self._level > 0.5
        step = 0.1 if (is_easy or is_hard) and factor > 0.8 else 0.05
        change = math.copysign(step * factor, accuracy - self._target)
        self._level = min(max(self._level + change, 0.0), 1.0)


@dataclasses.dataclass(frozen=True)
class Trace:
    """One run of one task.

    Attributes:
        reached: Scored groups until the target was reached; None if it never was.
        off: Distance of each window's mean score from the target.
        expected_off: The same of the learner's accuracy.
    """

    reached: int | None
    off: list[float]
    expected_off: list[float]


def run_task(
    controller: Controller,
    learner: Learner,
    target: float,
    group_size: int,
    in_flight: int,
    rng: random.Random,
) -> Trace:
    """Let a controller follow a learner."""
    progress = TaskHistory()
    asked: deque[tuple[int, float]] = deque()
    scores, expected, reached = [], [], None
    settling = WINDOW + ROUNDS * in_flight
    for number in range(settling + WINDOWS * WINDOW + in_flight - 1):
        level = controller.level_of(TASK)
        if reached is None and abs(learner.accuracy(level, number) - target) <= BAND:
            reached = len(scores)
        asked.append((number, level))
        if len(asked) < in_flight:
            continue
        made, made_level = asked.popleft()
        scores.append(learner.group_mean(made_level, made, group_size, rng))
        expected.append(learner.accuracy(made_level, made))
        progress.record_group(TASK, scores[-1], made_level)
        controller.update(TASK, progress)
    starts = range(settling, settling + WINDOWS * WINDOW, WINDOW)
    return Trace(
        reached,
        [abs(statistics.fmean(scores[s : s + WINDOW]) - target) for s in starts],
        [abs(statistics.fmean(expected[s : s + WINDOW]) - target) for s in starts],
    )


def run_learner(
    make: Callable[[float], Controller],
    learner: Learner,
    target: float,
    group_size: int,
    in_flight: int,
    runs: int,
    seed: int,
) -> dict[str, Any]:
    """Return what became of some runs of one learner."""
    traces = [
        run_task(
            make(target), learner, target, group_size, in_flight, random.Random(key)
        )
        for key in (f"{seed}/{run}" for run in range(runs))
    ]
    reached = [math.inf if t.reached is None else t.reached for t in traces]
    off = [value for trace in traces for value in trace.off]
    expected = [value for trace in traces for value in trace.expected_off]
    return {
        "learner": learner.name,
        "target": target,
        "group_size": group_size,
        "in_flight": in_flight,
        "reached_median": statistics.median(reached),
        "reached_last": max(reached),
        "reached_in_100": statistics.fmean(r <= WINDOW for r in reached),
        "off_mean": statistics.fmean(off),
        "off_max": max(off),
        "held": statistics.fmean(o <= BAND for o in off),
        "held_expected": statistics.fmean(o <= BAND for o in expected),
    }


def measure_learners(runs: int, seed: int) -> list[dict[str, Any]]:
    """Return one row for each learner, target and number of groups in flight."""
    return [
        run_learner(Curriculum, learner, target, 8, in_flight, runs, seed)
        for learner in LEARNERS
        for target in (0.5, 0.7, 0.8)
        for in_flight in (1, 16)
    ]


def print_learners(rows: Sequence[dict[str, Any]]) -> None:
    targets = sorted({row["target"] for row in rows})
    print("simulated learners, groups of 8, 1 and 16 groups in flight: reached / off")
    print(f"{'learner':24}" + "".join(f"{f'target {t}':>26}" for t in targets))
    for learner in LEARNERS:
        cells = [
            f"{row['reached_median']:5.0f}/{row['off_mean']:.3f}"
            for row in rows
            if row["learner"] == learner.name
        ]
        pairs = [
            f"{a:>15}{b:>11}" for a, b in zip(cells[::2], cells[1::2], strict=True)
        ]
        print(f"{learner.name:24}" + "".join(pairs))


def measure_laws(runs: int, seed: int) -> list[dict[str, Any]]:
    """Return, over all learners and targets, both laws under several conditions."""
    laws: tuple[tuple[str, Callable[[float], Controller]], ...] = (
        ("this", Curriculum),
        ("original", OriginalLaw),
    )
    found = []
    for group_size, in_flight in ((8, 1), (4, 1), (8, 4), (8, 16), (8, 128)):
        for law, make in laws:
            rows = [
                run_learner(make, learner, target, group_size, in_flight, runs, seed)
                for learner in LEARNERS
                for target in (0.5, 0.7, 0.8)
            ]
            names = ("reached_in_100", "off_mean", "held", "held_expected")
            means = {name: statistics.fmean(r[name] for r in rows) for name in names}
            setting = {"law": law, "group_size": group_size, "in_flight": in_flight}
            found.append(setting | means)
    return found


def print_laws(rows: Sequence[dict[str, Any]]) -> None:
    print("\nall of them, targets 0.5, 0.7 and 0.8, by law")
    words = ("reached in 100", "off", "windows held", "expected")
    print(f"{'group  in flight  law':24}" + "".join(f"{w:>16}" for w in words))
    for row in rows:
        head = f"{row['group_size']:5}{row['in_flight']:11}  {row['law']}"
        print(
            f"{head:24}{row['reached_in_100']:16.1%}{row['off_mean']:16.3f}"
            f"{row['held']:16.1%}{row['held_expected']:16.1%}"
        )


def measure_out_of_reach(seed: int) -> list[dict[str, Any]]:
    """Return where the level settles when no level brings the target."""
    found = []
    for learner in OUT_OF_REACH:
        curriculum = Curriculum(0.7)
        run_task(curriculum, learner, 0.7, 8, 1, random.Random(seed))
        level, why = curriculum.level_of(TASK), curriculum.at_bound(TASK)
        found.append({"learner": learner.name, "level": level, "says": why})
    return found


def print_out_of_reach(rows: Sequence[dict[str, Any]]) -> None:
    print(
        "\nno level brings 0.7: where the level is after 700 groups, and what is said"
    )
    for row in rows:
        print(f"{row['learner']:24}{row['level']:6.2f}  {row['says']}")


@dataclasses.dataclass(frozen=True)
class Training:
    """A simulated run from weak to strong over many tasks.

    The skill rises evenly from -3.5 to 3.5, the tasks' difficulties lie between -3 and
    3, and the accuracy of an item is logistic in their difference. Across its scale a
    level makes an item harder by 4, and 0.3 is neutral.

    Attributes:
        name: What it is, for the table.
        steepness: How suddenly a task is learnt.
        groups: Length of the run.
    """

    name: str
    steepness: float
    groups: int

    def accuracy(self, difficulty: float, level: float, number: int) -> float:
        skill = -3.5 + 7 * number / self.groups
        return logistic(self.steepness * (skill - difficulty - 4 * (level - 0.3)))


TRAININGS = (
    Training("learnt gradually, 32,000 groups", 2, RUN_GROUPS),
    Training("learnt suddenly, 32,000 groups", 4, RUN_GROUPS),
    Training("learnt gradually, 8,000 groups", 2, RUN_GROUPS // 4),
)


def run_training(
    training: Training, is_adaptive: bool, moves_levels: bool, seed: int
) -> float:
    """Return the share of groups without a signal."""
    rng = random.Random(seed)
    difficulty = {f"task {n}": rng.uniform(-3, 3) for n in range(TASKS)}
    tasks = list(difficulty)
    weights = AdaptiveWeights(dict.fromkeys(tasks, 1.0))
    curriculum, progress = Curriculum(0.7), TaskHistory()
    pending: deque[tuple[str, float, float]] = deque()
    silent = 0
    for number in range(training.groups):
        drawn = list(weights.weights().values()) if is_adaptive else None
        (task,) = rng.choices(tasks, drawn)
        level = curriculum.level_of(task) if moves_levels else 0.3
        p = training.accuracy(difficulty[task], level, number)
        mean = sum(rng.random() < p for _ in range(8)) / 8
        silent += mean in (0.0, 1.0)
        pending.append((task, mean, level))
        if len(pending) < RUN_IN_FLIGHT:
            continue
        task, mean, level = pending.popleft()
        progress.record_group(task, mean, level, has_signal=0 < mean < 1)
        weights.record(task, 0 < mean < 1)
        if moves_levels:
            curriculum.update(task, progress)
    return silent / training.groups


def measure_choice(seed: int) -> list[dict[str, Any]]:
    """Return the groups without a signal of each way to choose."""
    found = []
    for training in TRAININGS:
        row: dict[str, Any] = {"run": training.name}
        for levels, moves in (("", False), (" with curriculum", True)):
            for choice, is_adaptive in (("uniform", False), ("adaptive", True)):
                share = run_training(training, is_adaptive, moves, seed)
                row[f"{choice}{levels}"] = share
        row["ratio"] = row["uniform"] / row["adaptive"]
        both = row["adaptive with curriculum"]
        row["ratio with curriculum"] = row["uniform with curriculum"] / both
        row["ratio of both to neither"] = row["uniform"] / both
        found.append(row)
    return found


def print_choice(rows: Sequence[dict[str, Any]]) -> None:
    print(
        f"\nsimulated runs from weak to strong, {TASKS} tasks, groups of 8,"
        f" {RUN_IN_FLIGHT} in flight:\ngroups without a signal"
    )
    for row in rows:
        print(row["run"])
        for name, value in row.items():
            if name != "run":
                shown = f"{value:.2f}" if name.startswith("ratio") else f"{value:.1%}"
                print(f"  {name:30}{shown:>8}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the simulations and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10, help="of each learner")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args(argv)
    report = {"simulated": True, "seed": options.seed, "runs": options.runs}
    report["learners"] = learners = measure_learners(options.runs, options.seed)
    print_learners(learners)
    report["laws"] = laws = measure_laws(max(1, options.runs // 3), options.seed)
    print_laws(laws)
    report["out_of_reach"] = out_of_reach = measure_out_of_reach(options.seed)
    print_out_of_reach(out_of_reach)
    report["choice"] = choice = measure_choice(options.seed)
    print_choice(choice)
    if options.json is not None:
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
