"""A simulated model whose completions all have the same length, for benchmarks.

A completion is thinking, made once and cut where it has to be, and the answer behind
it. Of the n choices to a question every other one is right where the answer was told;
the others hold varied wrong answers.
"""

from __future__ import annotations

import functools
import random
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from rg_env.demo.chat_tokenizer import ChatTokenizer
from rg_env.demo.chatml import extract_last_user_message
from rg_env.demo.generation import Generation, Opening
from rg_env.demo.model import TRIAL_TOKENS
from tests.support.told_answers import ToldAnswers

WORDS = """
so we have to look at each of the numbers in turn and see whether it fits the rule that
was given then count again because a small slip would spoil it all first second third
next left right above below 3 7 12 40 equals plus minus
"""
BEGINNING = "<think>\n"
VARIANTS = 16


def throw_model_logprob(rng: random.Random) -> float:
    """Throw a value with the digits that a model's float32 has as JSON."""
    single: float = struct.unpack("f", struct.pack("f", -rng.expovariate(2.0)))[0]
    return single


class FixedLengthModel:
    """Answers prompts with completions of one length.

    Args:
        tokens: Length of a completion in tokens, the end token included.
        answers: What is known.
    """

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
        self._unknown_questions += gold is None and max_tokens > TRIAL_TOKENS
        length = min(self._tokens, max_tokens)
        made = []
        for place in range(n):
            is_right = gold is not None and place % 2 == 0
            text, ids, logprobs = self._ending(gold if is_right else str(place))
            begun = max(0, length - len(ids))
            kept = length - begun
            is_whole = self._tokens <= max_tokens and kept == len(ids)
            made.append(
                Generation(
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
        """Return the questions whose answer nobody had told."""
        return {"unknown_questions": self._unknown_questions}
