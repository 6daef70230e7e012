"""Which rule of choice and of difficulty teaches most with equal tokens?

    pip install torch
    python examples/studies/choices.py levels
    python examples/studies/choices.py tasks 100 101

In `levels`, all items are of `spell_backward`: the nine levels go from words of 3
letters to words of up to 11, and the warm start has read words of 3 to 5. In `tasks`,
they are of ten tasks: the warm start has mastered two of them, is right at times in
five, and has read 20 items each of three that are too hard for it. `target` is of
`levels`, with a curriculum that aims at a mean score of 0.5 as well. A completion pays
1.0 if it is right, else 0.0. The arms are `Tasks(levels="curriculum")`, or
`Tasks(choice="adaptive")`, and those of rules.py; README.md has the protocol.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from examples.studies.cells import Study, digest_of, main
from examples.studies.items import (
    BASE_SEED,
    base_model,
    held_out,
    trained_with,
    trivial,
    unseen,
)
from examples.studies.rewards import right_only
from examples.studies.rules import RULES, Place, Uniform
from examples.train_small.policy import Policy
from examples.train_small.train import evaluate, train, use_one_thread
from rg_env import Item, Tasks

METRICS = ("area", "score", "before", "trivial", "with_variance")

POINTS = 4
"""Evaluations after the first one, at equal distances in tokens."""

SPELLING = "spell_backward"
STEPS = 8

SMALL: dict[str, Mapping[str, Any]] = {
    "spell_backward": {"min_word_len": 3, "max_word_len": 4},
    "rotate_matrix": {"min_n": 2, "max_n": 2},
    "spiral_matrix": {"min_n": 2, "max_n": 2},
    "letter_jumble": {
        "min_words": 1,
        "max_words": 1,
        "min_word_len": 3,
        "max_word_len": 4,
    },
    "leg_counting": {"min_animals": 1, "max_animals": 1, "max_instances": 4},
    "chain_sum": {"min_terms": 2, "max_terms": 3, "max_digits": 1},
    "calendar_arithmetic": {"tasks": ["is_leap_year"]},
    "products": {"min_digits": 3, "max_digits": 3},
    "lcm": {"min_value": 100, "max_value": 1_000},
    "base_conversion": {"max_base": 9, "min_value": 100, "max_value": 1_000},
}
"""Task to parameters with which its questions and answers are a few words long."""


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


def spelling(level: Any, seed: int, **how: Any) -> Tasks:
    """Return a stream of words to spell."""
    return Tasks(SPELLING, levels=level, system_prompt="", seed=seed, **how)


def small(*tasks: str, **how: Any) -> Tasks:
    """Return a stream of tasks in their small form, without a system prompt."""
    params = {task: SMALL[task] for task in tasks}
    return Tasks(*tasks, params=params, system_prompt="", **how)


@dataclass(frozen=True)
class Setting:
    """What there is to choose from.

    Attributes:
        places: In the order of their difficulty, if they have one.
        stream: Of the items of a place, by a seed.
        ours: The stream that follows results, by a seed and arguments of `OURS`.
        held_out: Items of each place, or fewer.
        shown: Places of the warm start, and items of each.
        target: Of its mean.
        tokens: Generated in training.
    """

    places: Sequence[Place]
    stream: Callable[[Place, int], Tasks]
    ours: Callable[..., Tasks]
    held_out: int
    shown: Mapping[Place, int]
    target: float
    tokens: int


OURS = {"ours": {}, "half": {"target_accuracy": 0.5}}
"""Arms that follow results with arguments of `Tasks`."""

LEVELS = [(SPELLING, step / STEPS) for step in range(STEPS + 1)]

SETTINGS = {
    "levels": Setting(
        places=LEVELS,
        stream=lambda place, seed: spelling(place[1], seed),
        ours=lambda seed, **how: spelling("curriculum", seed, **how),
        held_out=45,
        shown={LEVELS[2]: 3_000},
        target=0.3,
        tokens=240_000,
    ),
    "tasks": Setting(
        places=[(task, None) for task in TEN],
        stream=lambda place, seed: small(place[0], seed=seed),
        ours=lambda seed: small(*TEN, choice="adaptive", seed=seed),
        held_out=40,
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
    if arm in OURS:
        tasks = setting.ours(seed, **OURS[arm])
        return tasks, tasks.feedback
    rule = RULES[arm](setting.places, random.Random(seed))
    # Streams of one seed and of different levels would have the same words.
    seeds = random.Random(f"streams {seed}")
    streams = {p: setting.stream(p, seeds.getrandbits(31)) for p in setting.places}

    def feedback(item: Item, values: Sequence[float | None]) -> None:
        if known := [value for value in values if value is not None]:
            rule.took((item.task, item.level), known)

    return drawn(rule, streams), feedback


def settings_of(name: str) -> dict[str, Any]:
    """Return all that decides the results of a setting."""
    of = SETTINGS[name]
    numbers = {n: v for n, v in vars(of).items() if isinstance(v, int | float)}
    shown = [[*place, number] for place, number in of.shown.items()]
    own = {"shown": shown, "places": of.places, "small": SMALL, "points": POINTS}
    return {**numbers, **own, **trained_with()}


def by_place(
    policy: Policy, asked: Mapping[Place, list[Item]], seed: int
) -> list[float]:
    """Return the held-out share of right sampled completions of each place."""
    found = [evaluate(policy, items, right_only, seed) for items in asked.values()]
    return [fmean(v for v in values if v is not None) for values in found]


def start(name: str) -> tuple[Policy, dict[Place, list[Item]]]:
    """Return the base model of a setting, and the held-out items of each place."""
    setting = SETTINGS[name]
    digest = f"{name}-{digest_of(settings_of(name))}"
    asked = {
        place: held_out(
            f"{digest}-{number}", setting.stream(place, 0), setting.held_out
        )
        for number, place in enumerate(setting.places)
    }
    shown = [(setting.stream(p, BASE_SEED), n) for p, n in setting.shown.items()]
    return base_model(digest, shown, right_only, setting.target), asked


def run(arm: str, name: str, seed: int) -> dict[str, Any]:
    """Return the result of a cell."""
    use_one_thread()
    setting = SETTINGS[name]
    policy, asked = start(name)
    items, feedback = chosen(arm, setting, seed)
    with_variance = []
    curve = [by_place(policy, asked, seed)]
    for one in train(policy, unseen(items), right_only, feedback, setting.tokens, seed):
        with_variance.append(one.with_variance)
        if one.tokens * POINTS >= setting.tokens * len(curve):
            curve.append(by_place(policy, asked, seed))
    over_all = [fmean(point) for point in curve]
    return {
        "area": fmean(map(fmean, pairwise(over_all))),
        "score": over_all[-1],
        "before": over_all[0],
        "trivial": fmean(trivial(items, right_only) for items in asked.values()),
        "with_variance": fmean(with_variance),
        "curve": curve,
    }


def study(name: str, setting: str, arms: Sequence[str]) -> Study:
    """Return a study of some arms in a setting."""
    places = [t if at is None else f"{at:g}" for t, at in SETTINGS[setting].places]
    return Study(name, arms, [setting], METRICS, run, settings_of, places=places)


STUDIES = (
    study("levels", "levels", ["ours", *RULES]),
    study("tasks", "tasks", ["ours", "uniform", "pools", "variance", "sec"]),
    study("target", "levels", list(OURS)),
)

if __name__ == "__main__":
    main(*STUDIES)
