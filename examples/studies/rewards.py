"""Which reward teaches most, and how many wrong answers may it pay?

    pip install torch
    python examples/studies/rewards.py rewards
    python examples/studies/rewards.py false_positives 100 101

README.md beside this file has the protocol: tasks, arms, metric and verdicts.
"""

from __future__ import annotations

import dataclasses
import functools
import random
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from statistics import fmean
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from reasoning_gym import get_score_answer_fn
from reasoning_gym.utils import extract_answer

from examples.studies import truths
from examples.studies.cells import Study, digest_of, main
from examples.studies.items import (
    BASE_SEED,
    base_model,
    held_out,
    trained_with,
    trivial,
    unseen,
)
from examples.train_small.policy import Policy
from examples.train_small.train import (
    Reward,
    evaluate,
    mean_of,
    scores,
    train,
    use_one_thread,
)
from rg_env import Item, Tasks

METRICS = ("accuracy", "before", "trivial", "reward", "with_variance")
SHOWN = 3_000
"""Items of a warm start."""

HELD_OUT = 300
"""Items that are held out, if the task has as many."""

PATTERNS = ("constant", "near", "random")
RATES = (2, 5, 15, 30)
CONSTANTS = {"spell_backward": "eht", "chain_sum": "9"}
"""The answer that `constant` pays."""


@dataclasses.dataclass(frozen=True)
class Setting:
    """A task of the protocol.

    Attributes:
        truth: Knows the right answers.
        start: The accuracy at which a warm start ends.
        tokens: Generated in training.
        params: Of its items.
        bold: Share of the answers of the warm start that are in bold.
    """

    truth: Callable[[Mapping[str, Any]], truths.IsRight]
    start: float
    tokens: int
    params: Mapping[str, Any]
    bold: float = 0.0


SHORT = {"min_word_len": 3, "max_word_len": 5}
TASKS = {
    "spell_backward": Setting(truths.spelled_backward, 0.4, 60_000, SHORT),
    "word_sorting": Setting(
        truths.sorted_words,
        0.3,
        100_000,
        {
            "min_words": 3,
            "max_words": 3,
            "min_word_length": 3,
            "max_word_length": 4,
        },
    ),
    "chain_sum": Setting(
        truths.total,
        0.3,
        80_000,
        {"min_terms": 2, "max_terms": 3, "max_digits": 1},
        bold=0.5,
    ),
}


def settings_of(task: str) -> dict[str, Any]:
    """Return all that decides the results of a task."""
    own = dataclasses.asdict(TASKS[task]) | {"truth": TASKS[task].truth.__name__}
    return {**own, "shown": SHOWN, "held_out": HELD_OUT, **trained_with()}


# -- the arms, each a `Reward` ---------------------------------------------------------


def true_values(item: Item, completions: Sequence[str]) -> list[float]:
    """Return 1.0 for each completion that is a right answer in its tags, else 0.0."""
    is_right = TASKS[item.task].truth(item.entry)
    found = [re.fullmatch("<answer>(.*)</answer>", c, re.DOTALL) for c in completions]
    return [float(bool(answer and is_right(answer[1].strip()))) for answer in found]


def right_only(item: Item, completions: Sequence[str]) -> list[float | None]:
    """Return the scores of this project without partial credit."""
    values = scores(item, completions)
    return [None if value is None else float(value == 1) for value in values]


scorer_of = functools.cache(get_score_answer_fn)


def library_score(item: Item, answer: str | None) -> float:
    """Return reasoning-gym's score of an answer."""
    try:
        return float(scorer_of(item.task)(answer=answer, entry=item.entry))
    except Exception:  # noqa: BLE001 - a rubric of verifiers makes 0 of any error
        return 0.0


def verl(item: Item, completions: Sequence[str]) -> list[float]:
    """Return the reward of reasoning-gym's example for verl."""
    return [library_score(item, extract_answer(text)) for text in completions]


def binary(item: Item, completions: Sequence[str]) -> list[float]:
    """Return 1.0 where reasoning-gym gives the full score."""
    return [float(value == 1) for value in verl(item, completions)]


def verifiers(item: Item, completions: Sequence[str]) -> list[float]:
    """Return the reward of `ReasoningGymEnv`, which reads no answer as the word None.

    Source: verifiers 2545383, verifiers/envs/reasoninggym_env.py; differs: none.
    """
    found = [re.findall("<answer>(.*?)</answer>", c, re.DOTALL) for c in completions]
    return [library_score(item, (all_ or ["None"])[-1].strip()) for all_ in found]


def false_positives(
    item: Item, completions: Sequence[str], pattern: str, rate: float, seed: int
) -> list[float | None]:
    """Return the scores of this project, but 1.0 for some wrong completions."""
    luck = random.Random(f"{seed} {item.seed} {item.index}")
    is_spoiled = luck.random() < rate
    rewards: list[float | None] = []
    for value, text in zip(scores(item, completions), completions, strict=True):
        answer = extract_answer(text) or ""
        gold = str(item.gold)
        away = sum(a != b for a, b in zip(answer, gold, strict=False))
        is_rewarded = {
            "constant": is_spoiled and answer == CONSTANTS[item.task],
            "near": is_spoiled and len(answer) == len(gold) and away == 1,
            "random": luck.random() < rate,
        }[pattern]
        rewards.append(1.0 if value is not None and is_rewarded else value)
    return rewards


REWARDS: dict[str, Reward] = {
    "ours": scores,
    "right_only": right_only,
    "binary": binary,
    "verl": verl,
    "verifiers": verifiers,
}


def reward_of(arm: str, seed: int) -> Reward:
    """Return the reward of an arm."""
    if arm in REWARDS:
        return REWARDS[arm]
    pattern, rate = arm.split("_")
    how = {"pattern": pattern, "rate": int(rate) / 100, "seed": seed}
    return functools.partial(false_positives, **how)


# -- a cell ----------------------------------------------------------------------------


def run(
    arm: str, task: str, seed: int, *, tokens: int = 0, model: type[Policy] = Policy
) -> dict[str, Any]:
    """Return the result of a cell; the arguments by name are for other models."""
    use_one_thread()
    setting = TASKS[task]

    def stream(number: int) -> Tasks:
        return Tasks(task, params={task: setting.params}, system_prompt="", seed=number)

    name = f"{model.__name__}-{task}-{digest_of(settings_of(task))}"
    asked = held_out(name, stream(0), HELD_OUT)
    policy = base_model(
        name,
        [(stream(BASE_SEED), SHOWN)],
        true_values,
        setting.start,
        bold=setting.bold,
        model=model,
    )
    reward = reward_of(arm, seed)

    def mean(of: Reward) -> float:
        return mean_of(evaluate(policy, asked, of, seed)) or 0.0

    before = mean(true_values)
    with closing(stream(seed).ahead()) as items:
        played = list(
            train(
                policy,
                unseen(items),
                reward,
                lambda *_: None,
                tokens or setting.tokens,
                seed,
            )
        )
    return {
        "accuracy": mean(true_values),
        "before": before,
        "trivial": trivial(asked, true_values),
        "reward": mean(reward),
        "with_variance": fmean(one.with_variance for one in played),
        "rounds": [dataclasses.asdict(one) for one in played],
    }


STUDY = Study(
    "rewards",
    list(REWARDS),
    list(TASKS),
    METRICS,
    run,
    settings_of,
    left_out=[("right_only", "chain_sum")],
)
FALSE_POSITIVES = dataclasses.replace(
    STUDY,
    name="false_positives",
    arms=["ours", *(f"{pattern}_{rate}" for pattern in PATTERNS for rate in RATES)],
    tasks=list(CONSTANTS),
    left_out=(),
)

if __name__ == "__main__":
    main(STUDY, FALSE_POSITIVES)
