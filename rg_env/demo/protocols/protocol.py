"""What every way of asking an inference server has: reading, shaping, breaking.

A protocol is pure: it reads the prompts in a request's body and shapes what was
generated for them. Only the prompt, `n` and the token limit are read; everything else
in a body is accepted and has no effect.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rg_env.demo.generation import Generation

MAX_CHOICES = 1024
MAX_TOKENS = 1_000_000

Body = dict[str, Any]


class BadRequest(ValueError):
    """A request that cannot be answered; its text says what was expected."""


@dataclass(frozen=True)
class Ask:
    """One prompt to be answered.

    Attributes:
        prompt: Its text, or its tokens.
        n: Number of completions, in [1, 1024].
        max_tokens: Longest completion in tokens, in [1, 1_000_000].
    """

    prompt: str | list[int]
    n: int
    max_tokens: int


@dataclass(frozen=True)
class Answer:
    """What was generated for one prompt.

    Attributes:
        prompt: Its text.
        prompt_ids: Its tokens.
        generations: One per choice.
    """

    prompt: str
    prompt_ids: Sequence[int]
    generations: Sequence[Generation]


@dataclass(frozen=True)
class InferenceProtocol:
    """One way of asking.

    Attributes:
        read: Body and default token limit to the prompts in it; raises `BadRequest`.
        shape: Body and one answer per prompt to the JSON value to send, which may hold
            `orjson.Fragment`.
        sends_tokens: Whether a reply holds tokens, and not texts alone.
        broken: Replies that no client can use, by the fault that calls for them.
    """

    read: Callable[[Body, int], list[Ask]]
    shape: Callable[[Body, Sequence[Answer]], Any]
    sends_tokens: bool
    broken: Mapping[str, Any] = field(default_factory=dict)


def encode_id(token: int | str, logprob: float | None) -> bytes:
    """Return a token alone, without its log-probability."""
    return b"%d" % token if isinstance(token, int) else json.dumps(token).encode()


def read_int(body: Body, names: Sequence[str], default: int, highest: int) -> int:
    """Read the first of several fields that is given, as an integer in [1, highest].

    Raises:
        BadRequest: It is none.
    """
    for name in names:
        value = body.get(name)
        if value is None:
            continue
        if type(value) is not int or not 1 <= value <= highest:
            raise BadRequest(
                f"`{name}`: expected an integer from 1 to {highest}, found {value!r}"
            )
        return value
    return default


def read_prompt(value: Any, name: str) -> str | list[int]:
    """Return a prompt as it was given.

    Raises:
        BadRequest: It is neither a text nor a list of token ids.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(type(t) is int for t in value):
        return value
    raise BadRequest(f"`{name}`: expected a text or a list of token ids, not empty")
