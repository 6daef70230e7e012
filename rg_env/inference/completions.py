"""Completions, and which of those in a reply can be used.

A completion is usable if the model has ended it or it was cut off at its limit, and if
each of its tokens is one of the tokenizer's and has a log-probability. One that the
server broke off is sampled again, and never counts as a wrong answer.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np

from rg_env.executor import release_gil
from rg_env.inference.connection import (
    CUT_OFF,
    TOKENIZER,
    UNUSABLE,
    Failure,
    RequestFailedError,
)

# The server makes these ends, which leave half a completion.
NOT_WHOLE = frozenset(
    {
        "abort",
        "aborted",
        "cancelled",
        "content_filter",
        "error",
        "insufficient_system_resource",
        "none",
    }
)

# Rounding puts the surest token a little above 0; a logit is far above it.
MAX_LOGPROB = 0.01


@dataclasses.dataclass(frozen=True)
class Sampling:
    """The sampling of completions with at most `max_tokens` each.

    `split`, "train" or "eval", says which of the server's request limits counts.
    """

    max_tokens: int
    temperature: float
    top_p: float
    split: str


class Completion(msgspec.Struct):
    """One completion of a prompt.

    Attributes:
        server_text: The text that the server returns.
        tokens: The token ids of the completion alone.
        logprobs: A number for each token; None in a chat.
        text: The text that our tokenizer decodes, once the completion was checked.
        unusable: Why the completion cannot be used; None if it can.
        model: The name of the model in the reply, if it has one.
    """

    server_text: Any
    tokens: list[int]
    logprobs: list[Any] | None
    finish_reason: Any
    text: str = ""
    unusable: Failure | None = None
    model: Any = None


@functools.lru_cache(maxsize=8)
def _highest_id(tokenizer: Any) -> int:
    """Return the highest token id of a tokenizer."""
    highest: int = max(tokenizer.get_vocab().values())
    return highest


def read_tokens(tokenizer: Any, completions: Iterable[Completion]) -> list[Completion]:
    """Check completions of token ids and decode them."""
    read = []
    highest = _highest_id(tokenizer)
    for each in completions:
        end = each.finish_reason
        if isinstance(end, dict):  # SGLang puts the word into an object
            each.finish_reason = end.get("type", "stop")
        each.unusable = why_unusable(each, highest)
        if each.unusable is None:
            # decode() checks each id of a list first, and none of an array.
            ids = np.asarray(each.tokens, dtype=np.int64)
            each.text = tokenizer.decode(ids, skip_special_tokens=True)
        read.append(each)
        release_gil()
    return read


def read_texts(tokenizer: Any, completions: Iterable[Completion]) -> list[Completion]:
    """Check completions of a chat, and give them the tokens of our tokenizer."""
    read = list(completions)
    for each in read:
        each.unusable = _why_cut_off(each.finish_reason)
        if each.server_text is None and each.unusable is None:
            each.unusable = Failure(UNUSABLE, "no content")
        each.text = (each.server_text or "").removesuffix(tokenizer.eos_token or "")
    # Half a character of UTF-16 has no tokens, and the tokenizer raises at it.
    whole = [each.text.encode("utf-8", "replace").decode() for each in read]
    # One text alone would be encoded without letting go of the interpreter's lock.
    encoded = tokenizer(whole, add_special_tokens=False)["input_ids"] if whole else []
    for each, ids in zip(read, encoded, strict=True):
        each.tokens = ids
    return read


def check_some_usable(completions: list[Completion]) -> None:
    """Raise an error where no completion of a reply is usable."""
    whys = [completion.unusable for completion in completions]
    if None not in whys:
        why = next(iter(whys), None) or Failure(UNUSABLE, "there is none")
        text = f"none of {len(whys)} completions is usable: {why.text}"
        raise RequestFailedError(dataclasses.replace(why, text=text))


def _why_cut_off(end: Any) -> Failure | None:
    # Some say more behind a colon, as "content_filter: RECITATION".
    word = end.partition(":")[0].lower() if end and isinstance(end, str) else "none"
    if word not in NOT_WHOLE:
        return None
    return Failure(f"{CUT_OFF}{word}", f"finish_reason {word}")


def why_unusable(completion: Completion, highest: float = math.inf) -> Failure | None:
    """Return why a trainer cannot use a completion; None if it can.

    `highest` is the highest token id of the tokenizer.
    """
    tokens = completion.tokens
    logprobs = completion.logprobs or []
    if (cut_off := _why_cut_off(completion.finish_reason)) is not None:
        return cut_off
    if not tokens:  # a trainer fails at none
        return Failure(UNUSABLE, "no token")
    try:
        # A sum is finite only if all of its parts are, and faster than checking each.
        is_finite = math.isfinite(sum(logprobs))
    except TypeError:  # None, as SGLang writes a NaN
        is_finite = False
    if not is_finite or len(tokens) != len(logprobs):
        text = "a log-probability that is no number, or none for a token"
        return Failure(UNUSABLE, text)
    if max(logprobs) > MAX_LOGPROB:
        text = f"a log-probability above 0 ({max(logprobs):.3g})"
        return Failure(UNUSABLE, f"{text}: logits perhaps (--logprobs-mode of vLLM)")
    # The trainer's embedding has no row for such an id.
    if min(tokens) < 0 or max(tokens) > highest:
        wrong = min(tokens) if min(tokens) < 0 else max(tokens)
        text = f"a token id that the tokenizer does not have ({wrong})"
        return Failure(UNUSABLE, text, setting=TOKENIZER)
    return None
