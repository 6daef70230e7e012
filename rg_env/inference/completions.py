"""Completions from replies with token ids or from chats, and which are usable.

A completion is usable if the model has ended it or it was cut off at its limit, and if
each of its tokens is one of the tokenizer's and has a log-probability. A completion
that the server broke off is sampled again; it never counts as a wrong answer.

The tokens of a chat completion are made by our own tokenizer from its text, and there
are no log-probabilities. Servers with a reasoning parser (vLLM's `--reasoning-parser`,
many endpoints) return the thinking separately, as `reasoning_content` or `reasoning`.
It is put back in front of the answer, because rows, dump files and extraction need the
whole text.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rg_env.inference.prompts import Prompt
from rg_env.inference.request_failures import (
    CUT_OFF,
    UNUSABLE,
    UNUSABLE_REPLY,
    Failure,
    bad_reply,
)
from rg_env.inference.routes import TokenReply
from rg_env.off_loop import keep_gil, off_loop, release_gil

# What the framework's managed server writes.
PROMPT_MASK = -100
PROMPT_LOGPROB = 1.0

FEW_TOKENS = 4096
"""So many are turned into text in a millisecond, in place."""

FEW_CHARS = 2048
"""Likewise for text that is turned into tokens."""

KNOWN_ENDS = frozenset({"stop", "length", "repetition", "tool_calls", "function_call"})
"""Ends of the model's making, its limit among them."""

NOT_WHOLE = frozenset(
    {"abort", "aborted", "cancelled", "content_filter", "error", "none"}
    | {"insufficient_system_resource"}
)
"""Ends of the server's making, which leave half a completion."""

HIGHEST_LOGPROB = 0.01
"""Rounding puts the surest token a little above 0; a logit is far above it."""

THINK, END_THINK = "<think>", "</think>"
REASONING = ("reasoning_content", "reasoning")


@dataclasses.dataclass(frozen=True)
class Completion:
    """One completion; `tokens`, `masks` and `logprobs` have equal lengths.

    Attributes:
        text: What the model wrote.
        finish_reason: "stop", "length" or the server's word.
        tokens: Prompt and completion.
        masks: -100 for the prompt, the token id for the completion.
        logprobs: 1.0 for the prompt; None where the server gives none.
        unusable: Why the completion cannot be used; None if it can.
    """

    text: str
    finish_reason: str | None
    tokens: list[int]
    masks: list[int]
    logprobs: list[float] | None
    unusable: Failure | None = None


@dataclasses.dataclass(frozen=True)
class Sampling:
    """How completions are sampled.

    Attributes:
        max_tokens: Longest completion, in tokens; at least 1.
        temperature: At least 0.
        top_p: In (0, 1].
        split: "train" or "eval": which of the server's request limits counts.
    """

    max_tokens: int
    temperature: float
    top_p: float
    split: str


def cut(completion: Completion, limit_tokens: int) -> Completion:
    """Cut a sequence whose server did not keep to max_tokens."""
    if len(completion.tokens) <= limit_tokens:
        return completion
    logprobs = completion.logprobs
    return dataclasses.replace(
        completion,
        finish_reason="length",
        tokens=completion.tokens[:limit_tokens],
        masks=completion.masks[:limit_tokens],
        logprobs=None if logprobs is None else logprobs[:limit_tokens],
    )


# -- of use or not ---------------------------------------------------------------------


def end_of(reason: Any) -> Any:
    """Return the word for why a completion ended, which SGLang puts in an object."""
    return reason.get("type", "stop") if isinstance(reason, dict) else reason


def why_cut_off(reason: Any) -> Failure | None:
    """Return why a completion is not whole, by its finish reason; None where it is."""
    end = end_of(reason) or "none"
    # Some say more behind a colon, as "content_filter: RECITATION".
    word = end.partition(":")[0].lower() if isinstance(end, str) else "none"
    if word not in NOT_WHOLE:
        return None
    return Failure(f"{CUT_OFF}{word}", f"finish_reason {word}")


@functools.lru_cache(maxsize=8)
def highest_id(tokenizer: Any) -> int | None:
    """Return the highest token id of a tokenizer; None where it does not say."""
    if not hasattr(tokenizer, "get_vocab"):
        return None
    return max(tokenizer.get_vocab().values(), default=None)


def why_unusable(
    tokens: Sequence[int],
    logprobs: Sequence[float],
    reason: Any,
    highest: int | None = None,
) -> Failure | None:
    """Return why a trainer cannot use a completion; None if it can.

    A trainer looks ids up in its embedding, where a larger one than `highest` ends it.

    Even an empty completion has an end token with a log-probability. Without any token
    there is nothing to train on: a trainer would fail, and if we added an end token, we
    would have to invent its probability.
    """
    cut_off = why_cut_off(reason)
    if cut_off is not None:
        return cut_off
    if not tokens:
        return Failure(UNUSABLE, "no token")
    try:
        # A sum is finite only if all of its parts are, and faster than checking each.
        is_finite = math.isfinite(sum(logprobs))
    except TypeError:  # None, as SGLang writes a NaN
        is_finite = False
    if not is_finite or len(tokens) != len(logprobs):
        said = "a log-probability that is no number, or none for a token"
        return Failure(UNUSABLE, said)
    if max(logprobs) > HIGHEST_LOGPROB:
        return Failure(UNUSABLE, f"a log-probability above 0 ({max(logprobs):.3g})")
    if min(tokens) < 0 or (highest is not None and max(tokens) > highest):
        said = f"a token id that the tokenizer does not have ({max(tokens)})"
        return Failure(UNUSABLE, said)
    return None


def check_some_usable(reply: Any, highest: int | None = None) -> None:
    """Raise an error where no completion of a reply, tokens or a chat, is usable.

    `highest` is the tokenizer's highest id, if known.
    """
    if isinstance(reply, tuple):
        # The last three parts of a `TokenReply`, all of a `Generated`.
        columns = zip(*reply[-3:], strict=True)
        reasons = [
            why_unusable(ids, logprobs, reason, highest)
            for ids, logprobs, reason in columns
        ]
    else:
        reasons = [why_no_answer(choice) for choice in reply.choices]
    if None in reasons:
        return
    why = next(filter(None, reasons), Failure(UNUSABLE, "there is none"))
    said = f"none of {len(reasons)} completions is usable: {why.said}"
    raise bad_reply(said, UNUSABLE_REPLY if why.kind == UNUSABLE else why.kind)


# -- of token ids ----------------------------------------------------------------------


def _as_array(ids: list[int]) -> np.ndarray:
    """Return token ids as decode() takes them without checking each one first."""
    array = np.asarray(ids)
    if ids and array.dtype.kind != "i":
        raise bad_reply("a token id is no whole number")
    return array.astype(np.int64)


async def from_tokens(tokenizer: Any, reply: TokenReply) -> list[Completion]:
    """Return the completions of a reply of token ids, as a client returns it.

    Raises:
        RequestFailedError: A token id is no whole number.
    """
    if sum(map(len, reply[1])) <= FEW_TOKENS:
        return _decoded(tokenizer, reply, keep_gil)
    return await off_loop(_decoded, tokenizer, reply, release_gil)


def _decoded(
    tokenizer: Any, reply: TokenReply, release_gil: Callable[[], None]
) -> list[Completion]:
    prompt, *lists = reply
    completions = []
    for ids, of_ids, reason in zip(*lists, strict=True):
        completion = Completion(
            text=tokenizer.decode(_as_array(ids), skip_special_tokens=True),
            finish_reason=end_of(reason),
            tokens=prompt + ids,
            masks=[PROMPT_MASK] * len(prompt) + ids,
            logprobs=[PROMPT_LOGPROB] * len(prompt) + of_ids,
            unusable=why_unusable(ids, of_ids, reason, highest_id(tokenizer)),
        )
        completions.append(completion)
        release_gil()
    return completions


# -- of a chat -------------------------------------------------------------------------


def _reasoning(message: Any) -> str:
    for name in REASONING:
        told = getattr(message, name, None)
        if isinstance(told, str) and told:
            return told
    return ""


def _content(message: Any) -> str | None:
    """Return the text of a message, a list of its parts joined; None without one."""
    content = message.content
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(text for text in parts if isinstance(text, str))
    told = getattr(message, "refusal", None) if content is None else content
    return told if isinstance(told, str) else None


def why_no_answer(choice: Any) -> Failure | None:
    """Return why a choice holds no answer of the model; None where it does."""
    cut_off = why_cut_off(choice.finish_reason)
    if cut_off is not None or _content(choice.message) is not None:
        return cut_off
    # A model may use up its tokens with thinking that nobody is told of.
    has_thought = _reasoning(choice.message) or choice.finish_reason == "length"
    return None if has_thought else Failure(UNUSABLE, "no content")


def whole_text(choice: Any, *, thinking_open: bool) -> str:
    """Return the model's text, with the thinking that the prompt may have opened."""
    content = _content(choice.message) or ""
    reasoning = _reasoning(choice.message)
    if not reasoning or END_THINK in content:
        return content
    begin = "" if thinking_open or reasoning.startswith(THINK) else THINK
    # Cut in the midst of its thinking, it never ended that.
    is_cut = not content and choice.finish_reason == "length"
    return f"{begin}{reasoning}{'' if is_cut else END_THINK}{content}"


async def from_chat(tokenizer: Any, prompt: Prompt, reply: Any) -> list[Completion]:
    """Return the completions of a chat, as openai's client has read it."""
    end = tokenizer.eos_token or ""
    whys = [why_no_answer(choice) for choice in reply.choices]
    texts = [
        whole_text(choice, thinking_open=prompt.thinking_open).removesuffix(end)
        if why is None
        else ""
        for choice, why in zip(reply.choices, whys, strict=True)
    ]
    if sum(map(len, texts)) <= FEW_CHARS:
        tokens = _encoded(tokenizer, texts)
    else:
        tokens = await off_loop(_encoded, tokenizer, texts)
    return [
        Completion(
            text=text,
            finish_reason=choice.finish_reason,
            tokens=[*prompt.tokens, *ids],
            masks=[PROMPT_MASK] * len(prompt.tokens) + ids,
            logprobs=None,
            unusable=why,
        )
        for choice, text, ids, why in zip(
            reply.choices, texts, tokens, whys, strict=True
        )
    ]


def _encoded(tokenizer: Any, texts: list[str]) -> list[list[int]]:
    # Half a character of UTF-16 has no tokens, and the tokenizer raises at it.
    whole = [text.encode("utf-8", "replace").decode() for text in texts]
    # One text alone would be encoded without letting go of the interpreter's lock.
    batch: list[list[int]] = tokenizer(whole, add_special_tokens=False)["input_ids"]
    return batch


# -- of the framework's proxy ----------------------------------------------------------


async def through_proxy(
    managed: Any, prompt: Prompt, arguments: dict[str, Any]
) -> list[Completion]:
    """Return completions that the framework's proxy server queries for."""
    messages = [dict(message) for message in prompt.messages]
    reply = await managed.chat_completion(messages=messages, **arguments)
    nodes = managed.get_state()["nodes"]
    return [
        Completion(
            text=choice.message.content or "",
            finish_reason=choice.finish_reason,
            tokens=node.tokens,
            masks=node.masked_tokens,
            logprobs=node.logprobs,
            unusable=why_unusable(
                node.tokens[begin:],
                node.logprobs[begin:],
                choice.finish_reason,
                highest_id(managed.tokenizer),
            ),
        )
        for choice, node in zip(reply.choices, nodes, strict=True)
        for begin in [node.masked_tokens.count(PROMPT_MASK)]
    ]
