"""A supervised start: a model learns the form of an answer, and to be right sometimes.

Group-relative policy gradient learns from the differences within a group, so a model
that is never right, or always, learns nothing. The start ends for a task when its
answers to conversations that were kept back are right often enough, and the others get
its time.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from examples.train_small.policy import Policy

STATE_FILE = "warm_start.json"
KEPT_BACK = 64
"""Conversations of each task that are only asked."""

REACHED_SHARE = 0.1
"""What a task that is good enough keeps of its time, so that it stays so."""

RISING_STEPS = 20
"""The learning rate rises from 0 to its value in so many."""


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
        task: That made the question.
        prompt: Token ids.
        answer: Token ids, with the one that ends a completion.
    """

    task: str
    prompt: list[int]
    answer: list[int]


@dataclass(frozen=True)
class Start:
    """How the start goes.

    Attributes:
        seconds: It lasts at most so long.
        target: Share of right answers, in 0 to 1, with which a task is good enough.
        learning_rate: Above 0.
        rows: Conversations of a step.
        look_every_s: Between two looks at what was kept back.
    """

    seconds: float = 120.0
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
        loss: Task to nats a token of the answers that were kept back.
        right: Task to the share of them that it gives, in 0 to 1.
    """

    step: int = 0
    seconds: float = 0.0
    loss: dict[str, float] = field(default_factory=dict)
    right: dict[str, float] = field(default_factory=dict)


def read_conversations(
    path: Path, tokenizer: Tokenizer
) -> dict[str, list[Conversation]]:
    """Read what gold_conversations.py has written, by task."""
    read: dict[str, list[Conversation]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        *prompt, gold = row["messages"]
        text = tokenizer.apply_chat_template(
            prompt, tokenize=False, add_generation_prompt=True
        )
        answer = gold["content"] + tokenizer.eos_token
        read.setdefault(row["task"], []).append(
            Conversation(
                row["task"],
                tokenizer.encode(text, add_special_tokens=False),
                tokenizer.encode(answer, add_special_tokens=False),
            )
        )
    return dict(sorted(read.items()))


def warm_start(
    policy: Policy,
    conversations: Mapping[str, Sequence[Conversation]],
    start: Start,
    folder: Path,
    *,
    seed: int,
    tell: Callable[[StartState], None],
) -> StartState:
    """Train until every task is good enough, or the time is over.

    What was done is in `folder` after every look, and a second call continues there.

    Args:
        policy: Is trained; with the weights it has, or those in `folder`.
        conversations: By task; the first ones of each are kept back.
        start: How it goes.
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
    kept = {task: rows[:KEPT_BACK] for task, rows in conversations.items()}
    asked = {tuple(c.prompt) for rows in kept.values() for c in rows}
    trained = {
        task: [c for c in rows if tuple(c.prompt) not in asked]
        for task, rows in conversations.items()
    }
    looked_at = state.seconds
    while state.seconds < start.seconds and not _is_good(state, kept, start):
        began = time.monotonic()
        policy.learning_rate = start.learning_rate * min(
            1.0, (state.step + 1) / RISING_STEPS
        )
        rng = np.random.default_rng([seed, state.step])
        _step(policy, _draw(trained, kept, state.right, start, rng))
        state.step += 1
        state.seconds += time.monotonic() - began
        if state.seconds - looked_at > start.look_every_s:
            looked_at = state.seconds
            _look(policy, kept, state)
            _keep(policy, state, folder)
        tell(state)
    _look(policy, kept, state)
    _keep(policy, state, folder)
    return state


def _is_good(state: StartState, tasks: Iterable[str], start: Start) -> bool:
    return all(state.right.get(task, 0.0) >= start.target for task in tasks)


def _keep(policy: Policy, state: StartState, folder: Path) -> None:
    policy.save(folder, with_optimiser=True)
    (folder / STATE_FILE).write_text(json.dumps(vars(state)), encoding="utf-8")


def _draw(
    conversations: Mapping[str, Sequence[Conversation]],
    kept: Mapping[str, Sequence[Conversation]],
    right: Mapping[str, float],
    start: Start,
    rng: np.random.Generator,
) -> list[Conversation]:
    """Draw a batch in which tasks that are not good enough take equal time."""
    is_good = [right.get(task, 0.0) >= start.target for task in conversations]
    times = [np.mean([len(c.prompt) for c in rows]) for rows in kept.values()]
    places = np.where(is_good, REACHED_SHARE, 1.0) / times
    counts = rng.multinomial(start.rows, places / places.sum())
    return [
        rows[i]
        for rows, count in zip(conversations.values(), counts, strict=True)
        for i in rng.integers(0, len(rows), count)
    ]


def _step(policy: Policy, chosen: Sequence[Conversation]) -> None:
    """Take a step up the mean log-probability of the answers' tokens."""
    count = sum(len(c.answer) for c in chosen)
    weights = [_is_answer(c) / np.float32(count) for c in chosen]
    policy.step([c.prompt + c.answer for c in chosen], weights)


def _look(
    policy: Policy, kept: Mapping[str, Sequence[Conversation]], state: StartState
) -> None:
    """Measure it on what was kept back."""
    for task, rows in kept.items():
        chosen = [_is_answer(c) for c in rows]
        told = policy.log_probabilities([c.prompt + c.answer for c in rows], chosen)
        values = [row[is_answer] for row, is_answer in zip(told, chosen, strict=True)]
        state.loss[task] = -float(np.concatenate(values).mean())
        state.right[task] = _share_of_right(policy, rows)


def _is_answer(conversation: Conversation) -> np.ndarray:
    lengths = len(conversation.prompt), len(conversation.answer)
    return np.repeat([False, True], lengths)


def _share_of_right(policy: Policy, kept: Sequence[Conversation]) -> float:
    longest = max(len(c.answer) for c in kept)
    stops = frozenset(c.answer[-1] for c in kept)
    samples = policy.sample([c.prompt for c in kept], longest, 0.0, stops, 0)
    pairs = zip(samples, kept, strict=True)
    return float(np.mean([tokens == c.answer for (tokens, _), c in pairs]))
