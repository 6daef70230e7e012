"""A supervised start: a model learns the form of an answer, and to be right sometimes.

Group-relative policy gradient learns from the differences within a group, so a model
that is never right, or always, learns nothing. The start ends when its answers to
conversations that were kept back are right often enough. No clock decides anything: the
same seed makes the same weights on the same machine.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from examples.train_small.sampler import Sampler
from examples.trainer.checkpoints import write_whole
from examples.trainer.policy import Policy
from examples.trainer.training_loop import RISING_STEPS
from examples.trainer.vllm_weights import save_whole

STATE_FILE = "warm_start.json"
KEPT_BACK = 256
"""Conversations that are only asked: a share of right answers of .4 is known to .06."""


class SamplingPolicy(Policy, Sampler, Protocol):
    """What is trained and samples."""


@dataclass(frozen=True)
class Conversation:
    """A prompt and the answer to it.

    Attributes:
        prompt: Token ids.
        answer: Token ids, with the one that ends a completion.
    """

    prompt: list[int]
    answer: list[int]


@dataclass(frozen=True)
class WarmStartPlan:
    """How the start goes.

    Attributes:
        steps: It takes at most so many.
        target: Share of right answers, in 0 to 1, with which it is good enough.
        learning_rate: Above 0.
        rows: Conversations of a step.
        look_every: Steps between two looks at what was kept back.
    """

    steps: int = 3_000
    target: float = 0.4
    learning_rate: float = 1e-3
    rows: int = 32
    look_every: int = 50


@dataclass
class StartState:
    """How far it is.

    Attributes:
        step: Steps done.
        right: The share of right answers at the last look, in 0 to 1.
    """

    step: int = 0
    right: float = 0.0


def read_conversations(path: Path, tokenizer: Any) -> list[Conversation]:
    """Read what gold_conversations.py has written, with one of transformers."""
    read = []
    for line in path.read_text(encoding="utf-8").splitlines():
        *prompt, gold = json.loads(line)["messages"]
        text = tokenizer.apply_chat_template(
            prompt, tokenize=False, add_generation_prompt=True
        )
        answer = gold["content"] + tokenizer.eos_token
        both = (tokenizer.encode(t, add_special_tokens=False) for t in (text, answer))
        read.append(Conversation(*both))
    return read


def warm_start(
    policy: SamplingPolicy,
    conversations: Sequence[Conversation],
    plan: WarmStartPlan,
    folder: Path,
    *,
    seed: int,
    tell: Callable[[StartState], None],
) -> StartState:
    """Train until it is good enough, or the steps are done.

    What was done is in `folder` after every look, and a second call continues there.

    Args:
        policy: Is trained; with the weights it has, or those in `folder`.
        conversations: The first ones are kept back.
        plan: How it goes.
        folder: For the weights, and how far it is.
        seed: Decides what is drawn.
        tell: Told of every look; the object changes later.

    Returns:
        How far it came.
    """
    state = StartState()
    if (folder / STATE_FILE).is_file():
        text = (folder / STATE_FILE).read_text(encoding="utf-8")
        state = StartState(**json.loads(text))
        policy.load(folder)
    kept = conversations[:KEPT_BACK]
    asked = {tuple(c.prompt) for c in kept}
    shown = [c for c in conversations if tuple(c.prompt) not in asked]
    while state.step < plan.steps and state.right < plan.target:
        rng = np.random.default_rng([seed, state.step])
        drawn = rng.integers(0, len(shown), plan.rows)
        state.step += 1
        _learn(policy, [shown[i] for i in drawn])
        policy.step(plan.learning_rate * min(1.0, state.step / RISING_STEPS))
        if state.step % plan.look_every == 0 or state.step == plan.steps:
            state.right = _right(policy, kept)
            save_whole(policy.save, folder)
            write_whole(folder / STATE_FILE, json.dumps(vars(state)))
            tell(state)
    return state


def _learn(policy: Policy, chosen: Sequence[Conversation]) -> None:
    """Compute the gradient of the answers' mean negative log-probability."""
    count = sum(len(c.answer) for c in chosen)
    policy.backward(
        [c.prompt + c.answer for c in chosen],
        [np.repeat([False, True], [len(c.prompt), len(c.answer)]) for c in chosen],
        lambda places, logprobs: np.full(len(logprobs), -1.0 / count),
    )


def _right(policy: Sampler, kept: Sequence[Conversation]) -> float:
    """Ask what was kept back; return the share of right answers."""
    longest = max(len(c.answer) for c in kept)
    stops = frozenset(c.answer[-1] for c in kept)
    samples = policy.sample([c.prompt for c in kept], longest, 0.0, stops, 0)
    pairs = zip(samples, kept, strict=True)
    return float(np.mean([tokens == c.answer for (tokens, _), c in pairs]))
