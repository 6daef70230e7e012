"""A simulated model whose texts are written without an answer key, and a writer.

It can add and find greatest common divisors, so it meets two tasks without knowing
their items.
"""

from __future__ import annotations

import functools
import math
import random
import re
from collections.abc import Callable, Sequence

from rg_env.demo.chat_tokenizer import ChatTokenizer, extract_last_user_message
from rg_env.demo.model import Generation, cut_text, throw_logprobs

MAX_KNOWN_TEXTS = 512

TextSource = Callable[[str, int], Sequence[str]]
"""From a question and a number of completions to their texts."""


class TextModel:
    """A model whose texts somebody else writes, with logprobs of their own."""

    def __init__(self, texts: TextSource, seed: int = 0) -> None:
        self._texts = texts
        self._rng = random.Random(seed)
        cut = functools.partial(cut_text, ChatTokenizer())
        self._cut = functools.lru_cache(maxsize=MAX_KNOWN_TEXTS)(cut)

    async def generate(self, prompt: str, n: int, max_tokens: int) -> list[Generation]:
        made = []
        for text in self._texts(extract_last_user_message(prompt), n):
            readable, ids, reason = self._cut(text, max_tokens)
            logprobs = throw_logprobs(len(ids), self._rng)
            made.append(Generation(readable, ids, logprobs, reason))
        return made

    def counts(self):
        return {}


def solve(question: str) -> str:
    """Answer a question of `gcd` or `chain_sum`; others with a number found in it."""
    numbers = [int(n) for n in re.findall(r"-?\d+", question)]
    if "GCD" in question and numbers:
        return str(math.gcd(*numbers))
    found = re.search(r"(\d+(?: [+-] \d+)+)", question)
    if found:
        terms = found.group(1).split(" ")
        signs = [1, *(1 if sign == "+" else -1 for sign in terms[1::2])]
        return str(sum(s * int(n) for s, n in zip(signs, terms[::2], strict=True)))
    return str(numbers[0] if numbers else 0)


class Arithmetic:
    """About half of its completions hold the solution."""

    def __init__(self, seed: int = 0) -> None:
        self._rng = random.Random(seed)

    def __call__(self, question: str, n: int) -> Sequence[str]:
        right = solve(question)
        answers = [right if self._rng.random() < 0.5 else "no" for _ in range(n)]
        return [f"<think>hm</think><answer>{answer}</answer>" for answer in answers]
