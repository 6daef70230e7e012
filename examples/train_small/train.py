"""A small model learns a task of this library by GRPO, in one process and in minutes.

    pip install . torch
    python examples/train_small/train.py [COMPLETIONS]

`grpo_step` is the algorithm. Where items come from, what a completion is worth and who
is told are arguments of `train`, which the studies replace.
"""

from __future__ import annotations

import copy
import hashlib
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
import torch

from examples.train_small.policy import Policy, Rollouts
from examples.trainer.grpo import advantages
from rg_env import Item, Tasks, score

Reward = Callable[[Item, Sequence[str]], Sequence[float | None]]
"""From an item and its completions to their values; None where there is no score."""

Feedback = Callable[[Item, Sequence[float | None]], object]
"""Is told the values of each group."""

GROUPS = 16
"""Groups of a step."""

GROUP_SIZE = 8
"""Completions of a group."""

MAX_NEW_TOKENS = 48
"""Tokens of a completion; a longer one is cut off, and not trained on."""

WARMUP_STEPS = 20
MAX_GRAD_NORM = 1.0

WARM_ROWS = 32
"""Rows of a step of the warm start."""

WARM_STRIDE = 64
"""Its steps between two measurements at most."""

KEPT = 256
"""Items of a measurement."""

TOLERANCE = 0.05
"""A warm start ends at most this far above its target."""


def use_one_thread() -> None:
    """Let torch compute on one thread, on which the same seed has the same result."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)  # what Adam forgets would cost the most time


def scores(item: Item, completions: Sequence[str]) -> list[float | None]:
    """Return the scores of the library; a `Reward`."""
    return [result.value for result in score(item, completions)]


def mean_of(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that there are, None without any."""
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


# -- training --------------------------------------------------------------------------


def new_optimiser(policy: Policy) -> torch.optim.Optimizer:
    """Return the optimiser of a policy."""
    # Weight decay would pull at weights that no token of a small batch has moved.
    return torch.optim.AdamW(policy.model.parameters(), lr=0.0, weight_decay=0.0)


def _step_down(optimiser: torch.optim.Optimizer, learning_rate: float) -> None:
    (group,) = optimiser.param_groups
    group["lr"] = learning_rate
    torch.nn.utils.clip_grad_norm_(group["params"], MAX_GRAD_NORM)
    optimiser.step()
    optimiser.zero_grad()


def grpo_step(
    policy: Policy,
    optimiser: torch.optim.Optimizer,
    rollouts: Rollouts,
    rewards: Sequence[Sequence[float | None]],
    learning_rate: float,
) -> float:
    """Take a step of GRPO on groups that the policy has just sampled.

    The weights are those that sampled, so every ratio is 1 and no clip can act.

    Args:
        policy: Is trained.
        optimiser: Of the policy.
        rollouts: B groups of G completions, of at most C tokens.
        rewards: Of each completion, (B, G); None where there is no score.
        learning_rate: Of this step.

    Returns:
        The share of groups whose rewards differ; the others teach nothing.
    """
    values = torch.tensor(np.array(rewards, dtype=float))
    advantage = torch.tensor(np.stack([advantages(group) for group in values.numpy()]))
    mask = rollouts.is_token & (rollouts.has_ended & values.isfinite())[..., None]
    differs = advantage.any(1)
    if differs.any():
        prompts = rollouts.prompts[differs], rollouts.is_padding[differs]
        logprobs = policy.logprobs(*prompts, rollouts.ids[differs])  # (differing, G, C)
        weight = (advantage[..., None] * mask)[differs]
        loss = -(weight * logprobs).sum() / mask.sum().clamp(min=1)
        loss.backward()
        _step_down(optimiser, learning_rate)
    return float(differs.float().mean())


@dataclass(frozen=True)
class Round:
    """One step, and how far the training is at its end.

    Attributes:
        tokens: Generated until its end.
        reward: Mean value of its completions, None without any.
        with_variance: Share of its groups whose values differ.
    """

    tokens: int
    reward: float | None
    with_variance: float


def train(
    policy: Policy,
    items: Iterator[Item],
    reward: Reward,
    feedback: Feedback,
    tokens: int,
    seed: int,
) -> Iterator[Round]:
    """Train until so many tokens are generated, and yield every round.

    On one thread, the same seed has the same result.

    Args:
        policy: Is trained.
        items: One for each group.
        reward: Values the completions of a group; called from several threads.
        feedback: Is told the values of each group, in the order of the items.
        tokens: The budget; the last round may go beyond it.
        seed: Decides what is sampled.
    """
    rng = torch.Generator().manual_seed(seed)
    optimiser = new_optimiser(policy)
    used = 0
    steps = 0
    with ThreadPoolExecutor(GROUPS) as threads:
        while used < tokens:
            asked = list(islice(items, GROUPS))
            questions = [item.question for item in asked]
            made = policy.sample(questions, GROUP_SIZE, MAX_NEW_TOKENS, rng)
            values = list(threads.map(reward, asked, made.texts))
            for item, group in zip(asked, values, strict=True):
                feedback(item, group)
            steps += 1
            falling = 2 * (1 - used / tokens)  # from half of the way on
            rate = policy.learning_rate * min(steps / WARMUP_STEPS, falling, 1.0)
            with_variance = grpo_step(policy, optimiser, made, values, rate)
            used += int(made.is_token.sum())
            yield Round(used, mean_of(chain.from_iterable(values)), with_variance)


def evaluate(
    policy: Policy, items: Sequence[Item], reward: Reward, seed: int | None
) -> list[float | None]:
    """Return the value of one completion of each item.

    The seed decides what is sampled; None takes the likeliest tokens.
    """
    rng = None if seed is None else torch.Generator().manual_seed(seed)
    values: list[float | None] = []
    with ThreadPoolExecutor(GROUPS) as threads:
        for first in range(0, len(items), GROUPS * GROUP_SIZE):
            part = items[first : first + GROUPS * GROUP_SIZE]
            questions = [item.question for item in part]
            made = policy.sample(questions, 1, MAX_NEW_TOKENS, rng)
            values += [v for (v,) in threads.map(reward, part, made.texts)]
    return values


# -- the warm start --------------------------------------------------------------------


def warm_start(
    policy: Policy,
    items: Sequence[Item],
    completions: Sequence[str],
    reward: Reward,
    target: float,
    seed: int,
) -> float:
    """Make a policy right at times, and return how often; else no group would differ.

    Where the mean value jumps beyond the target, the steps since the last measurement
    are taken back, and half as many taken before the next one.

    Args:
        policy: Is trained.
        items: Of any tasks; the first `KEPT` are only asked.
        completions: A right one of each.
        reward: Values completions of the items that are kept.
        target: It ends when their mean value is as high, or after the steps.
        seed: Decides what is drawn.
    """
    questions = [item.question for item in items]
    asked = {*questions[:KEPT]}
    shown = [i for i, question in enumerate(questions) if question not in asked]
    optimiser = new_optimiser(policy)
    rng = torch.Generator().manual_seed(seed)

    def step(number: int) -> None:
        drawn = torch.randint(len(shown), (WARM_ROWS,), generator=rng)
        places = [shown[i] for i in drawn]
        prompts = policy.tokenizer.padded([questions[i] for i in places], "left")
        texts = [completions[i] for i in places]
        ids, is_padding = policy.tokenizer.padded(texts, "right")
        logprobs = policy.logprobs(*prompts, ids[:, None])[:, 0]
        (-logprobs[~is_padding].mean()).backward()
        rate = policy.warm_learning_rate * min(number / WARMUP_STEPS, 1.0)
        _step_down(optimiser, rate)

    stride = WARM_STRIDE
    done = 0
    mean = 0.0
    while stride and mean < target and done < policy.warm_steps:
        before = copy.deepcopy((policy.model.state_dict(), optimiser.state_dict()))
        drawn_before = rng.get_state()
        for number in range(done, done + stride):
            step(number + 1)
        now = mean_of(evaluate(policy, items[:KEPT], reward, seed)) or 0.0
        if now <= target + TOLERANCE:
            done += stride
            mean = now
        else:
            policy.model.load_state_dict(before[0])
            optimiser.load_state_dict(before[1])
            rng.set_state(drawn_before)
            stride //= 2
    return mean


# -- the program -----------------------------------------------------------------------


def is_held_out(text: str) -> bool:
    """Whether the hash of a text says that it is not trained on: one in five."""
    return hashlib.sha256(text.casefold().encode()).digest()[0] % 5 == 0


def main(completions: int = 160_000) -> None:
    """Train on one task and say what has come of it."""
    use_one_thread()
    words = {"spell_backward": {"min_word_len": 3, "max_word_len": 5}}
    tasks = Tasks("spell_backward", params=words, seed=0)
    with closing(tasks.ahead()) as items:
        asked = {i.question: i for i in islice(items, 2_500) if is_held_out(i.question)}
        held_out = list(asked.values())
        unseen = (item for item in items if not is_held_out(item.question))
        shown = list(islice(unseen, 3_000))
        right = [f"<answer>{item.gold}</answer>" for item in shown]
        policy = Policy.new(shown, right, seed=0)
        warm_start(policy, shown, right, scores, 0.4, seed=0)
        print("held-out score:", mean_of(evaluate(policy, held_out, scores, None)))
        for played in train(
            policy, unseen, scores, tasks.feedback, completions, seed=0
        ):
            print(played)
    print("held-out score:", mean_of(evaluate(policy, held_out, scores, None)))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
