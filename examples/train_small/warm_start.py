"""A supervised start: a model learns the form of an answer, and to be right sometimes.

Group-relative policy gradient learns from the differences within a group, so a model
that is never right, or always, learns nothing. The start ends when its answers to
conversations that were kept back are right often enough.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from examples.train_small.policy import Policy, rising, save_whole
from examples.train_small.whole_files import write_whole

STATE_FILE = "warm_start.json"
KEPT_BACK = 256
"""Conversations that are only asked: a share of right answers of .4 is known to .06."""


class Tokenizer(Protocol):
    """What is asked of a tokenizer of transformers."""

    eos_token: str

    def apply_chat_template(self, messages: Any, **how: Any) -> Any:
        """Write messages as one text."""

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        """Return the token ids of a text."""


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
        seconds: It lasts at most so long.
        target: Share of right answers, in 0 to 1, with which it is good enough.
        learning_rate: Above 0.
        rows: Conversations of a step.
        look_every_s: Between two looks at what was kept back.
    """

    seconds: float = 300.0
    target: float = 0.4
    learning_rate: float = 1e-3
    rows: int = 32
    look_every_s: float = 10.0


@dataclass
class StartState:
    """How far it is.

    Attributes:
        step: Steps done.
        seconds: They took so long.
        right: The share of right answers at the last look, in 0 to 1.
    """

    step: int = 0
    seconds: float = 0.0
    right: float = 0.0


def read_conversations(path: Path, tokenizer: Tokenizer) -> list[Conversation]:
    """Read what gold_conversations.py has written."""
    read = []
    for line in path.read_text(encoding="utf-8").splitlines():
        *prompt, gold = json.loads(line)["messages"]
        text = tokenizer.apply_chat_template(
            prompt, tokenize=False, add_generation_prompt=True
        )
        answer = gold["content"] + tokenizer.eos_token
        read.append(
            Conversation(
                tokenizer.encode(text, add_special_tokens=False),
                tokenizer.encode(answer, add_special_tokens=False),
            )
        )
    return read


def warm_start(
    policy: Policy,
    conversations: Sequence[Conversation],
    plan: WarmStartPlan,
    folder: Path,
    *,
    seed: int,
    tell: Callable[[StartState], None],
) -> StartState:
    """Train until it is good enough, or the time is over.

    What was done is in `folder` after every look, and a second call continues there.

    Args:
        policy: Is trained; with the weights it has, or those in `folder`.
        conversations: The first ones are kept back.
        plan: How it goes.
        folder: For the weights, and how far it is.
        seed: Decides what is drawn.
        tell: Told of every step; the object changes later.

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
    looked_at = state.seconds
    while state.seconds < plan.seconds and state.right < plan.target:
        began = time.monotonic()
        policy.learning_rate = plan.learning_rate * rising(state.step + 1)
        rng = np.random.default_rng([seed, state.step])
        drawn = rng.integers(0, len(shown), plan.rows)
        _step(policy, [shown[i] for i in drawn])
        state.step += 1
        state.seconds += time.monotonic() - began
        if state.seconds - looked_at > plan.look_every_s:
            looked_at = state.seconds
            _look(policy, kept, state)
            _keep(policy, state, folder)
        tell(state)
    _look(policy, kept, state)
    _keep(policy, state, folder)
    return state


def _keep(policy: Policy, state: StartState, folder: Path) -> None:
    save_whole(policy, folder, with_optimiser=True)
    write_whole(folder / STATE_FILE, json.dumps(vars(state)))


def _step(policy: Policy, chosen: Sequence[Conversation]) -> None:
    """Take a step up the mean log-probability of the answers' tokens."""
    count = sum(len(c.answer) for c in chosen)
    weights = [_is_answer(c) / np.float32(count) for c in chosen]
    policy.step([c.prompt + c.answer for c in chosen], weights)


def _look(policy: Policy, kept: Sequence[Conversation], state: StartState) -> None:
    """Ask what was kept back."""
    longest = max(len(c.answer) for c in kept)
    stops = frozenset(c.answer[-1] for c in kept)
    samples = policy.sample([c.prompt for c in kept], longest, 0.0, stops, 0)
    pairs = zip(samples, kept, strict=True)
    state.right = float(np.mean([tokens == c.answer for (tokens, _), c in pairs]))


def _is_answer(conversation: Conversation) -> np.ndarray:
    lengths = len(conversation.prompt), len(conversation.answer)
    return np.repeat([False, True], lengths)
