"""The simulated policy as a model: prompts in, tokens with log-probabilities out.

It joins the tokenizer, the answer key and the simulated policy, and knows nothing of
HTTP. A completion depends on the seed, the prompt's text, how many times that prompt
was asked before and the place among the n choices; on nothing else, so that a run with
one seed can be repeated and two protocols asked the same thing say the same.

What it does not do: sampling parameters (temperature, top_p, stop) change nothing, and
the log-probabilities are dice, finite and negative, not any model's.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

from rg_env.demo.answer_key import AnswerKey
from rg_env.demo.chat_tokenizer import ChatTokenizer, extract_last_user_message
from rg_env.demo.model import TRIAL_TOKENS, Generation, cut_text, throw_logprobs
from rg_env.demo.policy import (
    PolicyProfile,
    SimulatedCompletion,
    sample_completion,
)


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
        self._key = key
        self._profile = profile or PolicyProfile()
        self._seed = seed
        self._tokenizer = ChatTokenizer()
        self._asked: Counter[bytes] = Counter()
        self._unknown_questions = 0
        self._kinds: Counter[str] = Counter()

    async def generate(self, prompt: str, n: int, max_tokens: int) -> list[Generation]:
        """Answer one prompt n times."""
        # Counted before the first await: the order of arrival decides.
        ask = self._count_ask(prompt)
        question = extract_last_user_message(prompt)
        if max_tokens <= TRIAL_TOKENS:
            # No answer fits: somebody tries whether a model answers. To draw for such a
            # question would keep those that wait for the trial waiting for a minute.
            entry = self._key.lookup(question)
        else:
            entry = await self._key.find(question)
            self._unknown_questions += entry is None
        generations = []
        for choice in range(n):
            rng = random.Random(f"{self._seed}/{ask}/{choice}/{prompt}")
            completion = sample_completion(entry, self._profile, rng)
            self._kinds[completion.kind] += 1
            generations.append(self._finish(completion, max_tokens, rng))
        return generations

    def counts(self) -> Mapping[str, Any]:
        """Return the completions by kind, and the questions it guessed."""
        return {"unknown_questions": self._unknown_questions, "kinds": self._kinds}

    def _count_ask(self, prompt: str) -> int:
        digest = hashlib.blake2b(prompt.encode(), digest_size=8).digest()
        self._asked[digest] += 1
        return self._asked[digest]

    def _finish(
        self, completion: SimulatedCompletion, max_tokens: int, rng: random.Random
    ) -> Generation:
        """Turn a completion into tokens; one without an end fills up to the limit."""
        text = completion.text
        if completion.kind == "unfinished":
            length = len(self._tokenizer.encode(text))
            text *= max_tokens // length + 1
        text, ids, reason = cut_text(self._tokenizer, text, max_tokens)
        return Generation(text, ids, throw_logprobs(len(ids), rng), reason)
