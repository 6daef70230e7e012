"""What plays the model behind a simulated inference server, and what it generates.

`PolicyModel` joins the tokenizer, the answer key and the simulated policy, and knows
nothing of HTTP. A completion depends on the seed, the prompt's text, how many times
that prompt was sent before and the place among the n choices; on nothing else, so that
a run with one seed can be repeated and two protocols asked the same thing say the same.

Sampling parameters (temperature, top_p, stop) change nothing, and the log-probabilities
are dice, finite and negative, not any model's.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from rg_env.demo.chat_tokenizer import ChatTokenizer, extract_last_user_message
from rg_env.demo.policy import PolicyProfile, SimulatedCompletion, sample_completion

if TYPE_CHECKING:
    from rg_env.demo.answer_key import AnswerKey

PROBE_TOKENS = 8
"""A limit up to here is of somebody who probes whether a model answers, and how."""

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
        """Answer a text, special tokens included, n times, in so many tokens each."""

    def counts(self) -> Mapping[str, Any]:
        """Return what else it counts, for `GET /stats`."""


def throw_logprobs(count: int, rng: random.Random) -> list[float]:
    """Throw finite negative log-probabilities of mean -0.5, shape (count,)."""
    return [round(-rng.expovariate(2), 4) for _ in range(count)]


def cut_text(
    tokenizer: ChatTokenizer, text: str, max_tokens: int
) -> tuple[str, list[int], str]:
    """Return what a text is as a completion: text, tokens and reason of the end."""
    ids = [*tokenizer.encode(text), tokenizer.end_id]
    is_whole = len(ids) <= max_tokens
    ids = ids[:max_tokens]
    readable = tokenizer.decode(ids[:-1] if is_whole else ids)
    return readable, ids, "stop" if is_whole else "length"


class PolicyModel:
    """Answers prompts with completions of the simulated policy.

    Args:
        key: Where the answers come from; a question outside it is answered by a guess.
        profile: How the policy behaves.
        seed: Decides every completion.
    """

    def __init__(
        self, key: AnswerKey, profile: PolicyProfile | None = None, seed: int = 0
    ) -> None:
        self._key, self._seed = key, seed
        self._profile = profile or PolicyProfile()
        self._tokenizer = ChatTokenizer()
        self._sent: Counter[bytes] = Counter()
        self._unknown_questions = 0
        self._kinds: Counter[str] = Counter()

    async def generate(self, prompt: str, n: int, max_tokens: int) -> list[Generation]:
        """Answer one prompt n times."""
        # Counted before the first await: the order of arrival decides.
        digest = hashlib.blake2b(prompt.encode(), digest_size=8).digest()
        self._sent[digest] += 1
        number = self._sent[digest]
        question = extract_last_user_message(prompt)
        if max_tokens <= PROBE_TOKENS:
            # No answer fits: it is a probe. To draw for such a question would keep
            # those that wait for it waiting for a minute.
            entry = self._key.lookup(question)
        else:
            entry = await self._key.find(question)
            self._unknown_questions += entry is None
        generations = []
        for choice in range(n):
            # A text gives the same numbers in every process, unlike its `hash`.
            rng = random.Random(f"{self._seed}/{number}/{choice}/{prompt}")
            completion = sample_completion(entry, self._profile, rng)
            self._kinds[completion.kind] += 1
            generations.append(self._finish(completion, max_tokens, rng))
        return generations

    def counts(self) -> Mapping[str, Any]:
        """Return the completions by kind, and the questions it guessed."""
        return {"unknown_questions": self._unknown_questions, "kinds": self._kinds}

    def _finish(
        self, completion: SimulatedCompletion, max_tokens: int, rng: random.Random
    ) -> Generation:
        """Turn a completion into tokens; one without an end fills up to the limit."""
        text = completion.text
        if completion.kind == "unfinished":
            text *= max_tokens // len(self._tokenizer.encode(text)) + 1
        text, ids, reason = cut_text(self._tokenizer, text, max_tokens)
        return Generation(text, ids, throw_logprobs(len(ids), rng), reason)
