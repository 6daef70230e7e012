"""Completions, and which of those in a reply can be used.

A completion is usable if the model ended it or it was truncated at its limit, and if
each of its tokens is one of the tokenizer's and has a log-probability. One that the
server aborted is sampled again, and never counts as a wrong answer.
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
    ABORTED,
    TOKENIZER,
    UNUSABLE,
    Failure,
    RequestFailedError,
)

# Finish reasons of completions that the server aborted.
ABORT_REASONS = (
    "abort",
    "aborted",
    "cancelled",
    "content_filter",
    "error",
    "insufficient_system_resource",
    "none",
)

# Rounding may put the likeliest token slightly above 0; a logit is far above it.
MAX_LOGPROB = 0.01


@dataclasses.dataclass(frozen=True)
class Sampling:
    """How completions are sampled.

    Attributes:
        max_tokens: The limit of each completion.
        split: "train" or "eval", which have separate limits of requests in flight.
    """

    max_tokens: int
    temperature: float
    top_p: float
    split: str


class Completion(msgspec.Struct):
    """One completion of a prompt.

    Attributes:
        server_text: The text in the reply.
        tokens: The token ids without the prompt; in a chat, those of our tokenizer.
        logprobs: A number for each token; None in a chat.
        finish_reason: The server's word.
        text: The text that our tokenizer decodes, after the completion was checked.
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


def read_tokens(
    tokenizer: Any, completions: Iterable[Completion], max_tokens: int | None = None
) -> list[Completion]:
    """Check completions of token ids, and decode at most `max_tokens` of each."""
    read = []
    highest = _highest_id(tokenizer)
    for completion in completions:
        reason = completion.finish_reason
        if isinstance(reason, dict):  # SGLang puts the word into an object
            completion.finish_reason = reason.get("type", "stop")
        completion.unusable = why_unusable(completion, highest)
        if completion.unusable is None:
            _truncate(completion, max_tokens)
            # decode() checks each id of a list first, and none of an array.
            ids = np.asarray(completion.tokens, dtype=np.int64)
            completion.text = tokenizer.decode(ids, skip_special_tokens=True)
        read.append(completion)
        release_gil()
    return read


def _truncate(completion: Completion, max_tokens: int | None) -> None:
    """Enforce a limit to which the server did not keep."""
    if max_tokens is not None and len(completion.tokens) > max_tokens:
        completion.tokens = completion.tokens[:max_tokens]
        completion.logprobs = (completion.logprobs or [])[:max_tokens]
        completion.finish_reason = "length"


def read_texts(tokenizer: Any, completions: Iterable[Completion]) -> list[Completion]:
    """Check completions of a chat, and give them the tokens of our tokenizer."""
    read = list(completions)
    eos = tokenizer.eos_token or ""
    for completion in read:
        completion.unusable = _why_aborted(completion.finish_reason)
        if completion.server_text is None and completion.unusable is None:
            completion.unusable = Failure(UNUSABLE, "no content")
        completion.text = (completion.server_text or "").removesuffix(eos)
    # The tokenizer raises an error for a lone surrogate.
    texts = [each.text.encode("utf-8", "replace").decode() for each in read]
    # The tokenizer releases the GIL only for a list, even if it has one text.
    encoded = tokenizer(texts, add_special_tokens=False)["input_ids"] if texts else []
    for completion, ids in zip(read, encoded, strict=True):
        completion.tokens = ids
    return read


def check_some_usable(completions: list[Completion]) -> None:
    """Raise an error if no completion of a reply is usable."""
    failures = [each.unusable for each in completions if each.unusable is not None]
    if len(failures) < len(completions):
        return
    failure = failures[0] if failures else Failure(UNUSABLE, "there is none")
    text = f"none of {len(completions)} completions is usable: {failure.text}"
    raise RequestFailedError(dataclasses.replace(failure, text=text))


def _why_aborted(reason: Any) -> Failure | None:
    """Return why a completion was aborted, by its finish reason; None if it was not."""
    # Some servers add details after a colon, as in "content_filter: RECITATION".
    is_text = isinstance(reason, str) and reason
    word = reason.partition(":")[0].lower() if is_text else "none"
    if word not in ABORT_REASONS:
        return None
    return Failure(f"{ABORTED}{word}", f"finish_reason {word}")


def why_unusable(completion: Completion, highest: float = math.inf) -> Failure | None:
    """Return why a trainer cannot use a completion; None if it can.

    `highest` is the highest token id of the tokenizer.
    """
    tokens = completion.tokens
    logprobs = completion.logprobs or []
    aborted = _why_aborted(completion.finish_reason)
    if aborted is not None:
        return aborted
    if not tokens:  # a trainer fails at an empty completion
        return Failure(UNUSABLE, "no token")
    try:
        # The sum is finite only if all are, and is faster than a check of each.
        is_finite = math.isfinite(sum(logprobs))
    except TypeError:  # SGLang writes NaN as null
        is_finite = False
    if not is_finite or len(tokens) != len(logprobs):
        return Failure(UNUSABLE, "a log-probability is missing or not finite")
    if max(logprobs) > MAX_LOGPROB:
        text = (
            f"a log-probability above 0 ({max(logprobs):.3g}): logits perhaps"
            " (--logprobs-mode of vLLM)"
        )
        return Failure(UNUSABLE, text)
    # The trainer's embedding has no row for such an id.
    if min(tokens) < 0 or max(tokens) > highest:
        wrong = min(tokens) if min(tokens) < 0 else max(tokens)
        text = f"a token id that the tokenizer does not have ({wrong})"
        return Failure(UNUSABLE, text, setting=TOKENIZER)
    return None
