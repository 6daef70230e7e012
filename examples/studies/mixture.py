"""Small forms of short tasks, and warm starts of them that several cells share."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import islice
from statistics import fmean
from typing import Any

from examples.studies.starts import kept
from examples.train_small.policy import Policy
from examples.train_small.train import (
    evaluate,
    new_policy,
    scores,
    warm_start,
    without,
)
from rg_env import Item, Tasks

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


def small(*tasks: str, **how: Any) -> Tasks:
    """Return a stream of tasks in their small form, without a system prompt."""
    params = {task: SMALL[task] for task in tasks}
    return Tasks(*tasks, params=params, system_prompt="", **how)


def right(item: Item, completions: Sequence[str]) -> list[float | None]:
    """Return 1.0 for each full score and 0.0 for less; a `Reward`."""
    values = scores(item, completions)
    return [None if value is None else float(value == 1) for value in values]


def held_out(streams: Sequence[Tasks], number: int) -> list[Item]:
    """Return as many items of each stream, of questions that training leaves out."""
    return [item for stream in streams for item in stream.evaluation(number)]


def means_of(
    policy: Policy, asked: Sequence[Item], seed: int
) -> dict[tuple[str, float | None], float]:
    """Return the share of right sampled completions, one an item, by task and level."""
    values: dict[Any, list[float | None]] = {}
    for item, value in zip(asked, evaluate(policy, asked, right, seed), strict=True):
        values.setdefault((item.task, item.level), []).append(value)
    return {
        place: fmean(v for v in of if v is not None) for place, of in values.items()
    }


def questions_of(items: Sequence[Item]) -> set[str]:
    """Return what `without` leaves out."""
    return {item.question.casefold() for item in items}


def started(
    name: str,
    shown: Sequence[tuple[Tasks, int]],
    asked: Sequence[Item],
    target: float,
    seed: int,
) -> Policy:
    """Return the warm start of a study and a seed.

    Args:
        name: Of the study.
        shown: Streams, and how many of their items it has.
        asked: Items whose questions are not shown.
        target: The mean of what is right at which it ends.
        seed: Decides the weights and the order.
    """

    def make() -> Policy:
        keys = questions_of(asked)
        items = [i for s, n in shown for i in islice(without(s, keys), n)]
        random.Random(seed).shuffle(items)
        texts = [f"<answer>{item.gold}</answer>" for item in items]
        policy = new_policy(items, texts, seed)
        warm_start(policy, items, texts, right, target, seed)
        return policy

    return kept(f"{name}-{seed}", make)
