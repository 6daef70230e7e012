"""The simulated inference engine: prompts in, tokens with log-probabilities out.

It joins the tokenizer, the answer key and the simulated policy, and knows nothing of
HTTP. A completion depends on the seed, the prompt's text, how many times that prompt
was asked before and the place among the n choices; on nothing else, so that a run with
one seed can be repeated and two protocols asked the same thing say the same.

What it does not do: sampling parameters (temperature, top_p, stop) change nothing, and
the log-probabilities are dice, finite and negative, not any model's.
"""

import hashlib
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tokenizers import Tokenizer

from rg_env.simulation.answer_key import AsyncKey
from rg_env.simulation.chatml import END, extract_last_user_message
from rg_env.simulation.policy import (
    PolicyProfile,
    SimulatedCompletion,
    sample_completion,
)

TOKENIZER_FOLDER = Path(__file__).resolve().parent / "tokenizer"

_MEAN_NEGATIVE_LOGPROB = 0.5


@dataclass(frozen=True)
class Generation:
    """One simulated completion as tokens.

    Attributes:
        text: The completion without the end token.
        token_ids: Its tokens, shape (T,), T <= max_tokens; the end token is the last
            one if and only if `finish_reason` is "stop".
        logprobs: One finite value <= 0 per token, shape (T,).
        finish_reason: "stop", or "length" when it was cut at max_tokens.
    """

    text: str
    token_ids: list[int]
    logprobs: list[float]
    finish_reason: Literal["stop", "length"]


@dataclass
class Ledger:
    """Counts of what the simulated engine has answered."""

    requests: int = 0
    completions: int = 0
    tokens: int = 0
    truncated: int = 0
    unknown_questions: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    forms: Counter[str] = field(default_factory=Counter)


def load_tokenizer(folder: Path = TOKENIZER_FOLDER) -> Tokenizer:
    """Load the tokenizer of a folder that holds a `tokenizer.json`.

    Raises:
        FileNotFoundError: There is none.
        ValueError: It has no `<|im_end|>`, so it is not one of the demo's format.
    """
    path = folder / "tokenizer.json"
    advice = (
        "train one with `python -m rg_env.simulation.train_tokenizer --output FOLDER`"
    )
    if not path.is_file():
        raise FileNotFoundError(f"no tokenizer at {path}; {advice}")
    tokenizer = Tokenizer.from_file(str(path))
    if tokenizer.token_to_id(END) is None:
        raise ValueError(f"{path}: expected a tokenizer with {END}; {advice}")
    return tokenizer


class SimulatedEngine:
    """Answers prompts with simulated completions.

    Args:
        key: Where the answers come from.
        profile: How the policy behaves.
        seed: Decides every completion.
        tokenizer: The one that the prompts were encoded with.

    Attributes:
        ledger: What was answered so far.
    """

    def __init__(
        self, key: AsyncKey, profile: PolicyProfile, seed: int, tokenizer: Tokenizer
    ) -> None:
        self._key = key
        self._profile = profile
        self._seed = seed
        self._tokenizer = tokenizer
        (self._end_id,) = self.encode(END)
        self._asked: Counter[bytes] = Counter()
        self.ledger = Ledger()

    def encode(self, text: str) -> list[int]:
        """Encode a text; special tokens in it become their own ids."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, token_ids: Sequence[int]) -> str:
        """Decode tokens, special ones included.

        Raises:
            ValueError: An id is outside the vocabulary.
        """
        size = self._tokenizer.get_vocab_size()
        wrong = [token for token in token_ids if not 0 <= token < size]
        if wrong:
            raise ValueError(
                f"token ids lie in [0, {size}), found {wrong[0]}; the prompt was"
                " encoded with another tokenizer than the simulated server's"
            )
        text: str = self._tokenizer.decode(list(token_ids), skip_special_tokens=False)
        return text

    async def generate(self, prompt: str, n: int, max_tokens: int) -> list[Generation]:
        """Answer one prompt n times.

        Args:
            prompt: Text of the prompt, special tokens included.
            n: Number of completions, positive.
            max_tokens: Longest completion in tokens, positive.

        Returns:
            n generations.
        """
        # Counted before the first await: the order of arrival decides.
        ask = self._count_ask(prompt)
        entry = await self._key.find(extract_last_user_message(prompt))
        self.ledger.requests += 1
        self.ledger.unknown_questions += entry is None
        generations = []
        for choice in range(n):
            rng = random.Random(f"{self._seed}/{ask}/{choice}/{prompt}")
            completion = sample_completion(entry, self._profile, rng)
            generations.append(self._finish(completion, max_tokens, rng))
        return generations

    def _count_ask(self, prompt: str) -> int:
        digest = hashlib.blake2b(prompt.encode(), digest_size=8).digest()
        self._asked[digest] += 1
        return self._asked[digest]

    def _finish(
        self, completion: SimulatedCompletion, max_tokens: int, rng: random.Random
    ) -> Generation:
        """Turn a completion into tokens, ended or cut, and count it."""
        ids = self.encode(completion.text)
        if completion.kind == "unfinished":
            ids = ids * (max_tokens // len(ids) + 1)
        else:
            ids = [*ids, self._end_id]
        ended = len(ids) <= max_tokens
        ids = ids[:max_tokens]
        text = self._tokenizer.decode(ids[:-1] if ended else ids)
        self._count(completion, len(ids), truncated=not ended)
        return Generation(
            text=text,
            token_ids=ids,
            logprobs=[
                round(-rng.expovariate(1 / _MEAN_NEGATIVE_LOGPROB), 4) for _ in ids
            ],
            finish_reason="stop" if ended else "length",
        )

    def _count(
        self, completion: SimulatedCompletion, tokens: int, *, truncated: bool
    ) -> None:
        self.ledger.completions += 1
        self.ledger.tokens += tokens
        self.ledger.truncated += truncated
        self.ledger.kinds[completion.kind] += 1
        self.ledger.forms[completion.form] += 1
