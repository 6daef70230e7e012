"""What a trainer needs of a server, checked on a short completion.

Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from rg_env.inference.refusals import TOKENIZER
from rg_env.inference.replies import (
    LOGPROBS,
    TOKEN_IDS,
    BadReplyError,
    Generated,
    MissingInReplyError,
    check_usable,
    end_of,
)
from rg_env.inference.routes import NUM_LIKELIEST, Told

HIGHEST_LOGPROB = 0.01
"""Rounding puts the surest token a little above 0; a logit is far above it."""

LEAST_LOGPROB = -1000.0
"""Below stand the numbers that some write for minus infinity."""

NO_CHARACTER = "\ufffd"
"""What half a character is decoded as."""


class WrongSettingError(ValueError):
    """What a server returns does not fit a setting; the text says why.

    Attributes:
        field: The setting.
    """

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason)
        self.field = field


def check_reply(
    tokenizer: Any, prompt: Sequence[int], generated: Generated, told: Told
) -> None:
    """Refuse a reply from which a trainer could not learn.

    Args:
        tokenizer: Ours.
        prompt: As it was sent, shape (T,).
        generated: The completions.
        told: What else the reply says.

    Raises:
        UnusableReplyError: Its completions are broken off, which may pass.
        BadReplyError: It lacks what is needed; another route may have it.
        WrongSettingError: The tokenizer is not the model's.
    """
    if not any(generated.tokens):
        raise MissingInReplyError(TOKEN_IDS)
    for ids, logprobs in zip(generated.tokens, generated.logprobs, strict=False):
        _check_logprobs(logprobs, len(ids))
    if all(end_of(reason) is None for reason in generated.finish_reasons):
        raise BadReplyError("its completions have no finish_reason")
    check_usable(generated)
    if told.prompt is not None and list(told.prompt) != list(prompt):
        raise BadReplyError("it changes the tokens of the prompt")
    _check_texts(tokenizer, generated.tokens, told.texts)


def _check_logprobs(logprobs: Sequence[float | None], count: int) -> None:
    numbers = [value for value in logprobs if value is not None]
    if len(numbers) < len(logprobs) or len(numbers) != count:
        raise MissingInReplyError(LOGPROBS)
    if not all(map(math.isfinite, numbers)):
        raise BadReplyError("a log-probability is not finite")
    if any(value > HIGHEST_LOGPROB for value in numbers):
        raise BadReplyError(
            f"what it gives as a log-probability is above 0 ({max(numbers):.3g}):"
            " logits perhaps (--logprobs-mode of vLLM)"
        )


def _plain(text: str) -> str:
    """Return a text without what two decoders may do differently."""
    return "".join(text.replace(NO_CHARACTER, "").split())


def _agree(ours: str, theirs: str) -> bool:
    """Say whether two texts are of the same tokens; a server may hold an end back."""
    mine, other = _plain(ours), _plain(theirs)
    return mine != "" and (mine.startswith(other) or other.startswith(mine))


def _check_texts(
    tokenizer: Any, tokens: Sequence[list[int]], texts: Sequence[Any]
) -> None:
    both = [
        (ids, text)
        for ids, text in zip(tokens, texts, strict=False)
        if isinstance(text, str) and _plain(text)  # an end alone has no text
    ]
    theirs = [text for _, text in both]
    try:
        ours = [tokenizer.decode(ids, skip_special_tokens=True) for ids, _ in both]
    except Exception as error:  # as many kinds as tokenizers
        reason = "it returns token ids that this tokenizer does not have"
        raise WrongSettingError(TOKENIZER, reason) from error
    if both and not any(map(_agree, ours, theirs)):
        raise WrongSettingError(
            TOKENIZER,
            f"its token ids are {ours[0][:60]!r} to this tokenizer, and"
            f" {theirs[0][:60]!r} to the server; name the tokenizer of its model",
        )


def span_of(logprobs: Iterable[Any]) -> float:
    """Return how far the likeliest tokens lie apart.

    Args:
        logprobs: Of the likeliest, and perhaps of one more.

    Raises:
        LookupError: There are not two.
    """
    known = [p for p in logprobs if isinstance(p, float) and p > LEAST_LOGPROB]
    likeliest = sorted(known, reverse=True)[:NUM_LIKELIEST]
    if len(likeliest) < 2:
        raise LookupError("no log-probabilities of the likeliest tokens")
    return likeliest[0] - likeliest[-1]


def check_temperature(at_one: float, at_own: float, temperature: float) -> None:
    """Refuse log-probabilities of temperature 1 where another is sampled with.

    A temperature divides the distance of any two of them.

    Args:
        at_one: The span of the likeliest first tokens, sampled with temperature 1.
        at_own: The same, sampled with the run's.
        temperature: The run's.

    Raises:
        WrongSettingError: They are.
    """
    if abs(at_own - at_one) < abs(at_own - at_one / temperature):
        raise WrongSettingError(
            "env.temperature",
            f"{temperature:g} is sampled with, and it returns log-probabilities of 1;"
            " start vLLM with --logprobs-mode processed_logprobs, or set 1.0",
        )
