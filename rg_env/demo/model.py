"""What plays the model behind a simulated inference server."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from rg_env.demo.chat_tokenizer import ChatTokenizer
from rg_env.demo.chatml import extract_last_user_message
from rg_env.demo.generation import Generation, throw_logprobs

MAX_KNOWN_TEXTS = 512

TRIAL_TOKENS = 8
"""A limit up to here is of somebody who tries whether a model answers, and how."""

TextSource = Callable[[str, int], Sequence[str]]
"""From a question and a number of completions to their texts."""


class Model(Protocol):
    """Answers prompts. There is no model behind it: it is simulated."""

    async def generate(self, prompt: str, n: int, max_tokens: int) -> list[Generation]:
        """Answer one prompt n times.

        Args:
            prompt: Text of the prompt, special tokens included.
            n: Number of completions, positive.
            max_tokens: Longest completion in tokens, positive.
        """

    def counts(self) -> Mapping[str, Any]:
        """Return what else it counts, for `GET /stats`."""


def cut_text(
    tokenizer: ChatTokenizer, text: str, max_tokens: int
) -> tuple[str, list[int], str]:
    """Return what a text is as a completion: text, tokens and reason of the end."""
    ids = [*tokenizer.encode(text), tokenizer.end_id]
    is_whole = len(ids) <= max_tokens
    ids = ids[:max_tokens]
    readable = tokenizer.decode(ids[:-1] if is_whole else ids)
    return readable, ids, "stop" if is_whole else "length"


class TextModel:
    """A model whose texts somebody else writes.

    Args:
        texts: Writes them; one that comes often is encoded once.
        seed: Decides the log-probabilities, by which a completion can be told from
            every other one.
    """

    def __init__(self, texts: TextSource, seed: int = 0) -> None:
        self._texts = texts
        self._rng = random.Random(seed)
        cut = functools.partial(cut_text, ChatTokenizer())
        self._cut = functools.lru_cache(maxsize=MAX_KNOWN_TEXTS)(cut)

    async def generate(self, prompt: str, n: int, max_tokens: int) -> list[Generation]:
        """Return the texts of a question as completions."""
        made = []
        for text in self._texts(extract_last_user_message(prompt), n):
            readable, ids, reason = self._cut(text, max_tokens)
            logprobs = throw_logprobs(len(ids), self._rng)
            made.append(Generation(readable, ids, logprobs, reason))
        return made

    def counts(self) -> Mapping[str, Any]:
        """Return nothing: the server counts all there is."""
        return {}
