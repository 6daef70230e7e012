"""One simulated completion, and its tokens as JSON that is cheap to make.

A benchmark's server must not cost more than what it measures. So a completion may begin
with an `Opening`, tokens that many completions share: for each protocol they are
encoded once, and a completion takes as many of the bytes as it needs.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import orjson

MEAN_NEGATIVE_LOGPROB = 0.5

TokenEncoder = Callable[["int | str", "float | None"], bytes]
"""From a token and its log-probability to the JSON that a protocol has for the two."""


def encode_number(value: float | None) -> bytes:
    """Return a number as JSON; NaN as Python's own encoder writes it."""
    if value is None:
        return b"null"
    return repr(value).encode() if value == value else b"NaN"


def throw_logprobs(count: int, rng: random.Random) -> list[float]:
    """Throw finite negative log-probabilities, which are no model's, shape (count,)."""
    return [round(-rng.expovariate(1 / MEAN_NEGATIVE_LOGPROB), 4) for _ in range(count)]


class Opening:
    """Tokens that completions begin with, as many as each of them needs.

    Args:
        token_ids: Shape (T,).
        texts: The text of each token, shape (T,); ASCII, so that each stands alone.
        logprobs: One a token, shape (T,).
    """

    def __init__(
        self, token_ids: Sequence[int], texts: Sequence[str], logprobs: Sequence[float]
    ) -> None:
        self.token_ids = list(token_ids)
        self.logprobs = list(logprobs)
        self._texts = _Joined([orjson.dumps(text)[1:-1] for text in texts], b"")
        self._joined: dict[TokenEncoder, _Joined] = {}

    def encode_tokens(self, count: int, encode: TokenEncoder) -> bytes:
        """Return the first tokens as JSON, between them commas."""
        joined = self._joined.get(encode)
        if joined is None:
            scored = zip(self.token_ids, self.logprobs, strict=True)
            joined = _Joined([encode(*pair) for pair in scored], b",")
            self._joined[encode] = joined
        return joined.first(count)

    def encode_text(self, count: int) -> bytes:
        """Return the text of the first tokens as JSON without its quotes."""
        return self._texts.first(count)


class _Joined:
    """Pieces joined by a separator, to be cut after any of them."""

    def __init__(self, pieces: Sequence[bytes], separator: bytes) -> None:
        self._all = separator.join(pieces)
        step = len(separator)
        ends = itertools.accumulate(len(piece) + step for piece in pieces)
        self._ends = [0, *(end - step for end in ends)]

    def first(self, count: int) -> bytes:
        return self._all[: self._ends[count]]


@dataclass(frozen=True)
class Generation:
    """One simulated completion.

    Attributes:
        text: Its text without the end token; after the opening, if it has one.
        token_ids: Its tokens, shape (T,), the end token included; after the opening.
        logprobs: One finite value <= 0 per token, shape (T,). Only a server that
            misbehaves on purpose has other values and other tokens.
        finish_reason: "stop", or "length" when it was cut at `max_tokens`.
        opening: What it begins with.
        opening_tokens: How many tokens of the opening.
    """

    text: str
    token_ids: Sequence[int | str]
    logprobs: Sequence[float | None]
    finish_reason: str
    opening: Opening | None = None
    opening_tokens: int = 0

    @property
    def num_tokens(self) -> int:
        """All tokens, those of the opening included."""
        return self.opening_tokens + len(self.token_ids)

    def encode_tokens(self, encode: TokenEncoder) -> orjson.Fragment:
        """Return the list of all tokens in the form of a protocol."""
        scored = zip(self.token_ids, self.logprobs, strict=True)
        parts = [b",".join([encode(*pair) for pair in scored])]
        if self.opening is not None:
            parts.insert(0, self.opening.encode_tokens(self.opening_tokens, encode))
        return orjson.Fragment(b"[%s]" % b",".join(part for part in parts if part))

    def encode_text(self) -> orjson.Fragment:
        """Return the whole text; it may hold what is no Unicode."""
        begun = b""
        if self.opening is not None:
            begun = self.opening.encode_text(self.opening_tokens)
        ended = json.dumps(self.text)[1:-1].encode()
        return orjson.Fragment(b'"%s%s"' % (begun, ended))
