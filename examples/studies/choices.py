"""Which rule of choice and of difficulty teaches most with equal tokens?

    pip install '.[report]' torch
    python examples/studies/choices.py
    python examples/studies/choices.py --only sec levels 3

In `levels`, all items are of `spell_backward`: the nine levels go from words of 3
letters to words of up to 11, and the warm start has read words of 3 to 5. In `tasks`,
they are of ten tasks: the warm start has mastered two of them, is right at times in
five, and has read 20 items each of three that are too hard for it. A completion pays
1.0 if it is right, else 0.0. The arms:

    ours       `Tasks(levels="curriculum")`, and `Tasks(choice="adaptive")`
    half       the same curriculum with `target_accuracy=0.5`; `levels` only
    uniform    every level, or task, alike
    library    reasoning-gym's: up above 0.7, down below 0.3; `levels` only
    rlve       a window of four levels, whose bound rises at 0.9; `levels` only
    pools      prime-rl's pools of hard, normal and easy places
    variance   in proportion to p (1 - p)
    sec        the bandit on absolute advantages

All arms of a seed have the same warm start and generate equally many tokens. `score` is
the held-out mean over all levels or tasks at the end, `area` that under its curve with
the tokens, and `with_variance` the share of groups whose values differ.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from examples.studies.cells import Cells
from examples.studies.mixture import (
    held_out,
    means_of,
    questions_of,
    right,
    small,
    started,
)
from examples.studies.rules import RULES, Place, Uniform
from examples.train_small.train import mean_of, train, use_one_thread, without
from rg_env import Item, Tasks

ARMS, SEEDS = ("ours", "half", *RULES), (0, 1, 2, 3, 4)
METRICS = ("area", "score", "with_variance")

POINTS = 4
"""Evaluations after the first one, at equal distances in tokens."""

SPELLING, STEPS = "spell_backward", 8

MASTERED = ("spiral_matrix", "rotate_matrix")
LEARNABLE = (
    *("spell_backward", "leg_counting", "chain_sum", "letter_jumble"),
    "calendar_arithmetic",
)
HOPELESS = ("products", "lcm", "base_conversion")
TEN = (*MASTERED, *LEARNABLE, *HOPELESS)
READ = dict.fromkeys(TEN, 1_800)
"""Items of each in the warm start."""
READ |= {"calendar_arithmetic": 600, "letter_jumble": 600, "rotate_matrix": 3_600}
READ |= dict.fromkeys(HOPELESS, 20)


def spelling(level: Any, seed: int = 0, **how: Any) -> Tasks:
    """Return a stream of words to spell."""
    return Tasks(SPELLING, levels=level, system_prompt="", seed=seed, **how)


@dataclass(frozen=True)
class Setting:
    """What there is to choose from.

    Attributes:
        places: In the order of their difficulty, if they have one.
        stream: Of the items of a place, by a seed.
        ours: The stream that follows results, by a seed and more arguments.
        measured: Places whose held-out scores are averaged.
        held_out: Items of each.
        shown: Places of the warm start, and items of each.
        target: Of its mean.
        tokens: Generated in training.
    """

    places: Sequence[Place]
    stream: Callable[[Place, int], Tasks]
    ours: Callable[..., Tasks]
    measured: Sequence[Place]
    held_out: int
    shown: Mapping[Place, int]
    target: float
    tokens: int


LEVELS = [(SPELLING, step / STEPS) for step in range(STEPS + 1)]

SETTINGS = {
    "levels": Setting(
        places=LEVELS,
        stream=lambda place, seed: spelling(place[1], seed),
        ours=lambda seed, **how: spelling("curriculum", seed, **how),
        measured=LEVELS[::2],
        held_out=80,
        shown={LEVELS[2]: 3_000},
        target=0.3,
        tokens=240_000,
    ),
    "tasks": Setting(
        places=[(task, None) for task in TEN],
        stream=lambda place, seed: small(place[0], seed=seed),
        ours=lambda seed, **how: small(*TEN, choice="adaptive", seed=seed, **how),
        measured=[(task, None) for task in TEN],
        held_out=50,
        shown={(task, None): number for task, number in READ.items()},
        target=0.6,
        tokens=160_000,
    ),
}


def drawn(rule: Uniform, streams: Mapping[Place, Tasks]) -> Iterator[Item]:
    """Yield the next item of the place that a rule names."""
    while True:
        yield next(streams[rule.next()])


def chosen(arm: str, setting: Setting, seed: int) -> tuple[Iterator[Item], Any]:
    """Return the items of an arm, and what is told the values of their groups."""
    if arm in ("ours", "half"):
        how = {"target_accuracy": 0.5} if arm == "half" else {}
        tasks = setting.ours(seed, **how)
        return tasks, tasks.feedback
    rule = RULES[arm](setting.places, random.Random(seed))
    # Streams of one seed and of different levels would have the same words.
    seeds = random.Random(f"streams {seed}")
    streams = {p: setting.stream(p, seeds.getrandbits(31)) for p in setting.places}

    def feedback(item: Item, values: Sequence[float | None]) -> None:
        if known := [value for value in values if value is not None]:
            rule.took((item.task, item.level), known)

    return drawn(rule, streams), feedback


def run(arm: str, name: str, seed: int, share: float) -> dict[str, Any]:
    """Return the result of a cell, or of a share of its size."""
    use_one_thread()
    setting = SETTINGS[name]
    asked = held_out([setting.stream(p, 0) for p in setting.measured], setting.held_out)
    shown = [(setting.stream(p, seed + 1_000), n) for p, n in setting.shown.items()]
    policy = started(f"choices-{name}", shown, asked, setting.target, seed)
    groups: Counter[str] = Counter()
    items, feedback = chosen(arm, setting, seed)

    def told(item: Item, values: Sequence[float | None]) -> None:
        groups[item.task if item.level is None else f"{item.level:.1f}"] += 1
        feedback(item, values)

    tokens, with_variance = round(share * setting.tokens), []
    curve = [means_of(policy, asked, seed)]
    unseen = without(items, questions_of(asked))
    for one in train(policy, unseen, right, told, tokens, seed):
        with_variance.append(one.with_variance)
        if one.tokens * POINTS >= tokens * len(curve):
            curve.append(means_of(policy, asked, seed))
    over_all = [fmean(point.values()) for point in curve]
    return {
        "score": over_all[-1],
        "area": fmean([fmean(two) for two in pairwise(over_all)] or over_all),
        "with_variance": mean_of(with_variance) or 0.0,
        "start": over_all[0],
        "curve": [list(point.items()) for point in curve],
        "groups": groups,
    }


LEVELS_ONLY = [(arm, "tasks") for arm in ("half", "library", "rlve")]
STUDY = Cells("choices", ARMS, tuple(SETTINGS), SEEDS, METRICS, run, LEVELS_ONLY)

if __name__ == "__main__":
    STUDY.main()
