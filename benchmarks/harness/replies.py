"""Completions of an exact length as bytes that are put together, not generated.

The thinking is made once: its token ids, log-probabilities and text stand ready as
JSON with the place where each token ends, so that a completion is two slices: so many
tokens of thinking, and the answer. A reply has the shape of Atropos' vLLM server.
"""

from __future__ import annotations

import functools
import itertools
import random
import struct
from collections.abc import Sequence
from pathlib import Path

import orjson

from rg_env.simulation.chatml import END
from rg_env.simulation.engine import TOKENIZER_FOLDER, load_tokenizer

WORDS = """
so we have to look at each of the numbers in turn and see whether it fits the rule that
was given then count again because a small slip would spoil it all first second third
next left right above below 3 7 12 40 equals plus minus
"""
OPENING = "<think>\n"
VARIANTS = 16


class Thinking:
    """Thinking of any length up to a bound, ready to be cut.

    Args:
        ids: Token ids, shape (T,).
        texts: The text of each token, shape (T,); ASCII, so that each stands alone.
        logprobs: One a token, shape (T,).
    """

    def __init__(
        self, ids: Sequence[int], texts: Sequence[str], logprobs: Sequence[float]
    ) -> None:
        scored = zip(ids, logprobs, strict=True)
        self._ids = _Cuttable([b"%d," % token for token in ids])
        self._logprobs = _Cuttable([_logprob(*pair) + b"," for pair in scored])
        self._text = _Cuttable([orjson.dumps(text)[1:-1] for text in texts])

    def cut(self, tokens: int) -> tuple[bytes, bytes, bytes]:
        """Return the first tokens' ids, log-probabilities and text, as open JSON."""
        return (
            self._ids.first(tokens),
            self._logprobs.first(tokens),
            self._text.first(tokens),
        )


class _Cuttable:
    """Pieces joined, and where each ends."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._all = b"".join(pieces)
        self._ends = [0, *itertools.accumulate(map(len, pieces))]

    def first(self, count: int) -> bytes:
        return self._all[: self._ends[count]]


def _logprob(token: int, value: float) -> bytes:
    return b'[{"%d":%s}]' % (token, orjson.dumps(value))


def _model_logprob(rng: random.Random) -> float:
    """Return a value with the digits that a model's float32 has as JSON."""
    single: float = struct.unpack("f", struct.pack("f", -rng.expovariate(2.0)))[0]
    return single


class Replies:
    """Builds replies whose completions all have the same number of tokens.

    Args:
        tokens: Length of a completion in tokens, the end token included.
        folder: Folder of the tokenizer.
    """

    def __init__(self, tokens: int, folder: Path = TOKENIZER_FOLDER) -> None:
        self.tokens = tokens
        self._tokenizer = load_tokenizer(folder)
        (self._end_id,) = self._encode(END)
        self._rng = random.Random(tokens)
        self._thinking = [self._think() for _ in range(VARIANTS)]

    def _think(self) -> Thinking:
        words = self._rng.choices(WORDS.split(), k=self.tokens)
        ids = self._encode(OPENING + " ".join(words))[: self.tokens]
        texts = [self._tokenizer.decode([token]) for token in ids]
        return Thinking(ids, texts, [_model_logprob(self._rng) for _ in ids])

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of a prompt, special tokens included."""
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=False)
        return text

    @functools.lru_cache(maxsize=4096)  # noqa: B019 - one object, which lives as long
    def _answer(self, answer: str) -> tuple[list[int], list[bytes], bytes]:
        text = f"\n</think>\n<answer>{answer}</answer>"
        ids = [*self._encode(text), self._end_id]
        logprobs = [_logprob(token, _model_logprob(self._rng)) for token in ids]
        return ids, logprobs, orjson.dumps(text)[1:-1]

    def build(
        self, prompt: Sequence[int], answers: Sequence[str], max_tokens: int
    ) -> tuple[bytes, int]:
        """Build the reply to one request.

        Args:
            prompt: Its token ids.
            answers: What stands in the answer tags of each choice, shape (n,).
            max_tokens: Longest completion; one that would be longer is cut, and loses
                its answer.

        Returns:
            The body, and the number of tokens of each completion.
        """
        length = min(self.tokens, max_tokens)
        texts, ids, logprobs, reasons = [], [], [], []
        for place, answer in enumerate(answers):
            tail_ids, tail_logprobs, tail_text = self._answer(answer)
            thinking = self._thinking[(len(prompt) + place) % VARIANTS]
            begun = max(0, length - len(tail_ids))
            head_ids, head_logprobs, head_text = thinking.cut(begun)
            kept = length - begun
            is_whole = self.tokens <= max_tokens and kept == len(tail_ids)
            texts.append(b'"%s%s"' % (head_text, tail_text if is_whole else b""))
            joined = b",".join(b"%d" % token for token in tail_ids[:kept])
            ids.append(b"[%s%s]" % (head_ids, joined))
            logprobs.append(
                b"[%s%s]" % (head_logprobs, b",".join(tail_logprobs[:kept]))
            )
            reasons.append(b'"stop"' if is_whole else b'"length"')
        body = (
            b'{"text":[%s],"prompt":%s,"finish_reasons":[%s],"logprobs":[%s],'
            b'"prompt_token_ids":%s,"token_ids":[%s]}'
        ) % (
            b",".join(texts),
            orjson.dumps(self.decode(prompt)),
            b",".join(reasons),
            b",".join(logprobs),
            orjson.dumps(list(prompt)),
            b",".join(ids),
        )
        return body, length
