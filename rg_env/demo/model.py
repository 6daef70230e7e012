"""What plays the model behind a simulated inference server, and what it generates."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from rg_env.demo.chat_tokenizer import ChatTokenizer

TRIAL_TOKENS = 8
"""A limit up to here is of somebody who tries whether a model answers, and how."""

MEAN_NEGATIVE_LOGPROB = 0.5

TokenEncoder = Callable[["int | str", "float | None"], bytes]
"""From a token and its log-probability to the JSON that a protocol has for the two."""


@dataclass(frozen=True)
class Generation:
    """One simulated completion.

    Attributes:
        text: Its text without the end token.
        token_ids: Its tokens, shape (T,), the end token included.
        logprobs: One finite value <= 0 per token, shape (T,). Only a server that
            misbehaves on purpose has other values and other tokens.
        finish_reason: "stop", or "length" when it was cut at `max_tokens`.
    """

    text: str
    token_ids: Sequence[int | str]
    logprobs: Sequence[float | None]
    finish_reason: str

    @property
    def num_tokens(self) -> int:
        """All its tokens."""
        return len(self.token_ids)

    def encode_tokens(self, encode: TokenEncoder) -> orjson.Fragment:
        """Return the list of all tokens in the form of a protocol."""
        scored = zip(self.token_ids, self.logprobs, strict=True)
        return orjson.Fragment(b"[%s]" % b",".join([encode(*pair) for pair in scored]))

    def encode_text(self) -> orjson.Fragment:
        """Return the whole text; it may hold what is no Unicode."""
        return orjson.Fragment(json.dumps(self.text).encode())


class Model(Protocol):
    """Answers prompts. There is no model behind it: it is simulated."""

    async def generate(
        self, prompt: str, n: int, max_tokens: int
    ) -> Sequence[Generation]:
        """Answer one prompt n times.

        Args:
            prompt: Text of the prompt, special tokens included.
            n: Number of completions, positive.
            max_tokens: Longest completion in tokens, positive.
        """

    def counts(self) -> Mapping[str, Any]:
        """Return what else it counts, for `GET /stats`."""


def throw_logprobs(count: int, rng: random.Random) -> list[float]:
    """Throw finite negative log-probabilities, which are no model's, shape (count,)."""
    return [round(-rng.expovariate(1 / MEAN_NEGATIVE_LOGPROB), 4) for _ in range(count)]


def cut_text(
    tokenizer: ChatTokenizer, text: str, max_tokens: int
) -> tuple[str, list[int], str]:
    """Return what a text is as a completion: text, tokens and reason of the end."""
    ids = [*tokenizer.encode(text), tokenizer.end_id]
    is_whole = len(ids) <= max_tokens
    ids = ids[:max_tokens]
    readable = tokenizer.decode(ids[:-1] if is_whole else ids)
    return readable, ids, "stop" if is_whole else "length"
