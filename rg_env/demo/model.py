"""What plays the model behind a simulated server: the policy, and the answers it knows.

Whoever draws the same stream meets the same questions. A key cannot follow a
curriculum, whose levels move with the results: there it has to be told the entries
before they are queried, as in the demo.

A completion depends on the seed, the prompt's text, how many times that prompt was sent
before and the place among the n choices; on nothing else. The log-probabilities are
dice, finite and negative, not any model's.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rg_env.demo.chat_tokenizer import ChatTokenizer, extract_last_user_message
from rg_env.demo.policy import KeyEntry, PolicyProfile, sample_completion
from rg_env.stream.item import Item
from rg_env.stream.prefetch import NoItemsError, PrefetchedItems

logger = logging.getLogger(__name__)

# A limit up to here is of somebody who probes whether a model answers, and how.
PROBE_TOKENS = 8

# Draws beyond the newest that was queried, more than the items that the env prepares
# ahead: an unknown question must not draw for ever.
MAX_AHEAD = 1024


class AnswerKey:
    """A key that draws from a stream as far as the questions need.

    The entries of the stream come in the order in which the env samples them. `misses`
    counts the questions that were not found within the bounds.
    """

    def __init__(
        self,
        stream: AsyncIterator[KeyEntry] | None = None,
        *,
        known: Iterable[KeyEntry] = (),
    ) -> None:
        self._stream = stream
        self._met = {entry.question: (0, entry) for entry in known}
        self._newest_queried = 0
        self._lock = asyncio.Lock()
        self.drawn = 0
        self.misses = 0

    def lookup(self, question: str) -> KeyEntry | None:
        """Return the entry of a question that is known or drawn already, or None."""
        number, entry = self._met.get(question, (0, None))
        self._newest_queried = max(self._newest_queried, number)
        return entry

    async def find(self, question: str) -> KeyEntry | None:
        """Return the entry of a question, drawing as far as MAX_AHEAD for it."""
        entry = self.lookup(question) or await self._drawn(question)
        self.misses += entry is None
        if entry is None and self.misses == 1:
            logger.warning(
                "the simulated policy does not know a question and guesses: is the"
                " environment started with the same seed and tasks? (said once)"
            )
        return entry

    async def _drawn(self, question: str) -> KeyEntry | None:
        async with self._lock:  # one question draws at a time
            entry = self.lookup(question)
            last = self._newest_queried + MAX_AHEAD
            while entry is None and self._stream is not None and self.drawn < last:
                if (drawn := await anext(self._stream, None)) is None:
                    return None
                self.remember(drawn)
                if drawn.question == question:
                    entry = self.lookup(question)
            return entry

    def remember(self, entry: KeyEntry) -> None:
        """Know the next entry of the stream."""
        self.drawn += 1
        self._met[entry.question] = self.drawn, entry


def build_entry(item: Item) -> KeyEntry:
    """Return what the policy has to know of an item."""
    answer = item.gold or "no solution known"  # which is wrong
    return KeyEntry(item.task, item.question, answer, item.level)


async def sampled_entries(items: PrefetchedItems) -> AsyncIterator[KeyEntry]:
    """Yield what an environment of the same settings samples, without end."""
    with contextlib.suppress(NoItemsError):
        while True:
            yield build_entry(await items.next())


@dataclass(frozen=True)
class Generation:
    """One simulated completion; the end token is among its tokens."""

    text: str
    token_ids: Sequence[int]
    logprobs: Sequence[float | None]
    finish_reason: str


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

    A question outside the key is answered by a guess. The seed decides all completions.
    """

    def __init__(
        self, key: AnswerKey, profile: PolicyProfile | None = None, seed: int = 0
    ) -> None:
        self._key, self._seed = key, seed
        self._profile = profile or PolicyProfile()
        self._tokenizer = ChatTokenizer()
        self._sent: Counter[bytes] = Counter()
        self._kinds: Counter[str] = Counter()

    async def generate(self, prompt: str, n: int, max_tokens: int) -> list[Generation]:
        """Answer a text, special tokens included, n times, in so many tokens each."""
        # Counted before the first await: the order of arrival decides.
        digest = hashlib.blake2b(prompt.encode(), digest_size=8).digest()
        self._sent[digest] += 1
        number = self._sent[digest]
        question = extract_last_user_message(prompt)
        # To draw for a probe, which no answer fits, would hold up all others.
        is_probe = max_tokens <= PROBE_TOKENS
        entry = (
            self._key.lookup(question) if is_probe else await self._key.find(question)
        )
        generations = []
        for choice in range(n):
            # A text gives the same numbers in every process, unlike its `hash`.
            rng = random.Random(f"{self._seed}/{number}/{choice}/{prompt}")
            text, kind = sample_completion(entry, self._profile, rng)
            self._kinds[kind] += 1
            if kind == "unfinished":  # fills up to the limit
                text *= max_tokens // len(self._tokenizer.encode(text)) + 1
            text, ids, reason = cut_text(self._tokenizer, text, max_tokens)
            logprobs = throw_logprobs(len(ids), rng)
            generations.append(Generation(text, ids, logprobs, reason))
        return generations

    def counts(self) -> Mapping[str, Any]:
        """Return the completions by kind, and the questions it guessed."""
        return {"unknown_questions": self._key.misses, "kinds": self._kinds}
