"""A simulated model whose completions all have the same length, for benchmarks.

A completion is thinking, made once and cut where it has to be, and the answer behind
it. Of the n choices to a question every other one is right where the answer was told;
the others hold varied wrong answers.

The server of a benchmark must not cost more than what is measured. So completions begin
with an `Opening`, tokens that many of them share: for each protocol they are encoded
once, and a completion takes as many of the bytes as it needs.

Answers are told by the probe of a benchmark. One question and its answer is a line of
JSON on a Unix socket:

    {"question": "2 + 2?", "answer": "4"}

Instead of an answer a line may hold `task` and `metadata`, from which an example of a
right answer is made.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import itertools
import json
import random
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from rg_env.demo.chat_tokenizer import ChatTokenizer, extract_last_user_message
from rg_env.demo.model import PROBE_TOKENS, Generation, TokenEncoder
from rg_env.task_rules.table import solution

WORDS = """
so we have to look at each of the numbers in turn and see whether it fits the rule that
was given then count again because a small slip would spoil it all first second third
next left right above below 3 7 12 40 equals plus minus
"""
BEGINNING = "<think>\n"
VARIANTS = 16
MAX_LINE_BYTES = 16 * 1024**2
MAX_KNOWN = 20_000


class ToldAnswers:
    """Questions whose answers were told, the oldest forgotten first."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def learn(self, told: Mapping[str, Any]) -> None:
        """Take in one question and its answer, or an example from its metadata."""
        answer = solution(told.get("task", ""), told)
        if answer is None:
            return
        self._known[told["question"]] = answer
        if len(self._known) > MAX_KNOWN:
            del self._known[next(iter(self._known))]

    def lookup(self, question: str) -> str | None:
        return self._known.get(question)

    async def listen(self, path: Path) -> asyncio.AbstractServer:
        """Learn what is told through a Unix socket, until the result is closed."""

        async def take(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            while line := await reader.readline():
                self.learn(json.loads(line))
            writer.close()

        return await asyncio.start_unix_server(take, path, limit=MAX_LINE_BYTES)


class Opening:
    """Tokens that completions begin with, as many as each needs; the text is ASCII."""

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


@dataclasses.dataclass(frozen=True)
class OpenedGeneration(Generation):
    """A completion with an opening; text and tokens are what follows it."""

    opening: Opening
    opening_tokens: int

    @property
    def num_tokens(self) -> int:
        return self.opening_tokens + len(self.token_ids)

    def encode_tokens(self, encode: TokenEncoder) -> orjson.Fragment:
        begun = self.opening.encode_tokens(self.opening_tokens, encode)
        scored = zip(self.token_ids, self.logprobs, strict=True)
        parts = (begun, *(encode(*pair) for pair in scored))
        return orjson.Fragment(b"[%s]" % b",".join(filter(None, parts)))

    def encode_text(self) -> orjson.Fragment:
        begun = self.opening.encode_text(self.opening_tokens)
        ended = json.dumps(self.text)[1:-1].encode()
        return orjson.Fragment(b'"%s%s"' % (begun, ended))


def throw_model_logprob(rng: random.Random) -> float:
    """Throw a value with the digits that a model's float32 has as JSON."""
    single: float = struct.unpack("f", struct.pack("f", -rng.expovariate(2.0)))[0]
    return single


class FixedLengthModel:
    """Answers prompts with completions of one length, the end token included."""

    def __init__(self, tokens: int, answers: ToldAnswers) -> None:
        self._tokens = tokens
        self._answers = answers
        self._tokenizer = ChatTokenizer()
        self._rng = random.Random(tokens)
        self._openings = [self._think() for _ in range(VARIANTS)]
        self._unknown_questions = 0

    def _think(self) -> Opening:
        words = self._rng.choices(WORDS.split(), k=self._tokens)
        ids = self._tokenizer.encode(BEGINNING + " ".join(words))[: self._tokens]
        texts = [self._tokenizer.decode([token]) for token in ids]
        return Opening(ids, texts, self._logprobs(ids))

    def _logprobs(self, ids: Sequence[int]) -> list[float]:
        return [throw_model_logprob(self._rng) for _ in ids]

    @functools.lru_cache(maxsize=4096)  # noqa: B019 - one object, which lives as long
    def _ending(self, answer: str) -> tuple[str, list[int], list[float]]:
        text = f"\n</think>\n<answer>{answer}</answer>"
        ids = [*self._tokenizer.encode(text), self._tokenizer.end_id]
        return text, ids, self._logprobs(ids)

    async def generate(self, prompt: str, n: int, max_tokens: int) -> list[Generation]:
        """Answer one prompt n times; what is cut at the limit loses its answer."""
        gold = self._answers.lookup(extract_last_user_message(prompt))
        self._unknown_questions += gold is None and max_tokens > PROBE_TOKENS
        length = min(self._tokens, max_tokens)
        made = []
        for place in range(n):
            is_right = gold is not None and place % 2 == 0
            text, ids, logprobs = self._ending(gold if is_right else str(place))
            begun = max(0, length - len(ids))
            kept = length - begun
            is_whole = self._tokens <= max_tokens and kept == len(ids)
            made.append(
                OpenedGeneration(
                    text if is_whole else "",
                    ids[:kept],
                    logprobs[:kept],
                    "stop" if is_whole else "length",
                    self._openings[(len(prompt) + place) % VARIANTS],
                    begun,
                )
            )
        return made

    def counts(self) -> Mapping[str, Any]:
        return {"unknown_questions": self._unknown_questions}
