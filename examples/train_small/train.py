"""A small model learns a task of this library by GRPO, in one process and in minutes.

    pip install . torch
    python examples/train_small/train.py [COMPLETIONS]

Where items come from, what a completion is worth and who is told are arguments of
`train`, which the studies replace.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch
from torch import Tensor

from examples.train_small.policy import Policy, Tokenizer
from rg_env import Item, Tasks, score

Reward = Callable[[Item, Sequence[str]], Sequence[float | None]]
"""From an item and its completions to their values; None where there is no score."""

Feedback = Callable[[Item, Sequence[float | None]], object]
"""Is told the values of each group."""

GROUPS, GROUP_SIZE, STEP_GROUPS = 16, 8, 8
"""Groups of a round, completions of a group, and how many groups whose values differ a
step waits for: two or three alone would be mostly noise."""

MAX_NEW_TOKENS = 48
"""Tokens of a completion; a longer one is cut off, and not trained on."""

WARMUP_STEPS = 20
MAX_GRAD_NORM = 1.0

WARM_ROWS, LOOK_EVERY, KEPT = 32, 50, 128


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


# -- the objective ---------------------------------------------------------------------


def advantages(values: Sequence[float | None]) -> list[float]:
    """Return how far each value of a group lies from their mean.

    Returns:
        In standard deviations (ddof 1); 0.0 where all values are equal, and for None.
    """
    known = [value for value in values if value is not None]
    spread = statistics.stdev(known) if len(known) > 1 else 0.0
    if spread < 1e-6:
        return [0.0] * len(values)
    mean = statistics.fmean(known)
    return [0.0 if value is None else (value - mean) / spread for value in values]


def grpo_loss(logprobs: Tensor, advantage: Tensor, mask: Tensor, tokens: int) -> Tensor:
    """Return the policy gradient's loss of some groups of a batch.

    The weights are those that sampled the batch: a ratio would be 1, and no clip acts.

    Args:
        logprobs: Of the completions, (B, G, C).
        advantage: Of each completion, (B, G).
        mask: Which tokens are trained on, (B, G, C).
        tokens: Of the batch that are trained on, over which is averaged.
    """
    return -(logprobs * advantage[..., None] * mask).sum() / tokens


# -- training --------------------------------------------------------------------------


@dataclass(frozen=True)
class Round:
    """What was sampled at once, and how far the training is at its end.

    Attributes:
        steps: Taken until its end.
        tokens: Generated until its end.
        reward: Mean value of its completions, None without any.
        with_variance: Share of its groups whose values differ.
    """

    steps: int
    tokens: int
    reward: float | None
    with_variance: float


def _adam(policy: Policy) -> torch.optim.Optimizer:
    # Weight decay would pull at weights that no token of a small batch has moved.
    return torch.optim.AdamW(policy.model.parameters(), lr=0.0, weight_decay=0.0)


def _step_down(optimiser: torch.optim.Optimizer, rate: float) -> None:
    (group,) = optimiser.param_groups
    group["lr"] = rate
    torch.nn.utils.clip_grad_norm_(group["params"], MAX_GRAD_NORM)
    optimiser.step()
    optimiser.zero_grad()


def _learn(
    policy: Policy, optimiser: torch.optim.Optimizer, batch: list[Any], rate: float
) -> None:
    """Take a step down the loss of a batch, whose rounds differ in their lengths."""
    total = sum(int(mask.sum()) for *_, mask in batch)
    for prompts, is_padding, ids, advantage, mask in batch:
        logprobs = policy.logprobs(prompts, is_padding, ids)
        grpo_loss(logprobs, advantage, mask, total).backward()
    _step_down(optimiser, rate)


def train(
    policy: Policy,
    groups: Iterator[Item],
    reward: Reward,
    feedback: Feedback,
    tokens: int,
    seed: int,
) -> Iterator[Round]:
    """Train until so many tokens are generated, and yield every round.

    Groups whose values are all equal teach nothing: they cost tokens and are left out.
    On one thread, the same seed has the same result.

    Args:
        policy: Is trained.
        groups: The items, one for each group.
        reward: Values the completions of a group; called from several threads.
        feedback: Is told the values of each group, in the order of the items.
        tokens: The budget; the last round may go beyond it.
        seed: Decides what is sampled.
    """
    rng = torch.Generator().manual_seed(seed)
    optimiser = _adam(policy)
    used, steps, batch = 0, 0, []
    with ThreadPoolExecutor(GROUPS) as threads:
        while used < tokens:
            items = list(islice(groups, GROUPS))
            questions = [item.question for item in items]
            made = policy.sample(questions, GROUP_SIZE, MAX_NEW_TOKENS, rng)
            values = list(threads.map(reward, items, made.texts))
            for item, group in zip(items, values, strict=True):
                feedback(item, group)
            falling = 2 * (1 - used / tokens)  # from half of the way on
            used += int(made.is_token.sum())
            advantage = torch.tensor([advantages(group) for group in values])
            known = torch.tensor([[v is not None for v in group] for group in values])
            mask = made.is_token & (made.has_ended & known)[..., None]
            differs = advantage.any(1)
            if (mask.any((1, 2)) & differs).any():
                parts = (made.prompts, made.is_padding, made.ids, advantage, mask)
                batch.append([part[differs] for part in parts])
            if sum(len(part[0]) for part in batch) >= STEP_GROUPS:
                rise = min((steps + 1) / WARMUP_STEPS, falling, 1.0)
                _learn(policy, optimiser, batch, policy.learning_rate * rise)
                steps, batch = steps + 1, []
            mean = mean_of(chain.from_iterable(values))
            yield Round(steps, used, mean, float(differs.float().mean()))


def evaluate(
    policy: Policy, items: Sequence[Item], reward: Reward, seed: int | None
) -> list[float | None]:
    """Return the value of one completion of each item, such as `Tasks.evaluation` has.

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


def new_policy(items: Sequence[Item], completions: Sequence[str], seed: int) -> Policy:
    """Return a policy whose tokenizer knows the items; the seed decides its weights."""
    by_task: dict[str, list[str]] = {}
    for item in items:
        by_task.setdefault(item.task, []).append(item.question)
    return Policy(Tokenizer.of(by_task.values(), "".join(completions)), seed)


def warm_start(
    policy: Policy,
    items: Sequence[Item],
    completions: Sequence[str],
    reward: Reward,
    target: float,
    seed: int,
) -> float:
    """Make a policy right at times, and return how often; else no group would differ.

    Args:
        policy: Is trained.
        items: Of any tasks; the first `KEPT` are only asked.
        completions: A right one of each.
        reward: Values completions of the items that are kept.
        target: It ends when their mean value is as high, or after the steps.
        seed: Decides what is drawn.
    """
    questions = [item.question for item in items]
    optimiser = _adam(policy)
    rng = torch.Generator().manual_seed(seed)
    asked, mean = {*questions[:KEPT]}, 0.0
    shown = [i for i, question in enumerate(questions) if question not in asked]
    for number in range(1, policy.warm_steps + 1):
        drawn = torch.randint(len(shown), (WARM_ROWS,), generator=rng)
        places = [shown[i] for i in drawn]
        prompts = policy.tokenizer.padded([questions[i] for i in places], "left")
        texts = [completions[i] for i in places]
        ids, is_padding = policy.tokenizer.padded(texts, "right")
        logprobs = policy.logprobs(*prompts, ids[:, None])[:, 0]
        (-logprobs[~is_padding].mean()).backward()
        rise = min(number / WARMUP_STEPS, 1.0)
        _step_down(optimiser, policy.warm_learning_rate * rise)
        if number % LOOK_EVERY == 0:
            mean = mean_of(evaluate(policy, items[:KEPT], reward, seed)) or 0.0
            if mean >= target:
                break
    return mean


# -- the program -----------------------------------------------------------------------


def without(items: Iterable[Item], questions: Container[str]) -> Iterator[Item]:
    """Yield the items whose question is none of these, in small letters."""
    return (item for item in items if item.question.casefold() not in questions)


def main(completions: int = 160_000) -> None:
    """Train on one task and say what has come of it."""
    use_one_thread()
    words = {"spell_backward": {"min_word_len": 3, "max_word_len": 5}}
    tasks = Tasks("spell_backward", params=words, seed=0)
    held_out = tasks.evaluation(500)
    with closing(tasks.ahead()) as items:
        unseen = without(items, {item.question.casefold() for item in held_out})
        shown = list(islice(unseen, 3_000))
        right = [f"<answer>{item.gold}</answer>" for item in shown]
        policy = new_policy(shown, right, seed=0)
        warm_start(policy, shown, right, scores, 0.4, seed=0)
        print("held-out score:", mean_of(evaluate(policy, held_out, scores, None)))
        for played in train(
            policy, unseen, scores, tasks.feedback, completions, seed=0
        ):
            print(played)
    print("held-out score:", mean_of(evaluate(policy, held_out, scores, None)))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
