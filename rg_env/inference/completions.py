"""Completions: what a reply of token ids, or of a chat, comes to.

A completion of a chat has the tokens that our own tokenizer makes of its text, and no
log-probabilities.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from rg_env.inference.chat_replies import whole_text, why_no_answer
from rg_env.inference.prompts import Prompt
from rg_env.inference.replies import BadReplyError, TokenReply, end_of, why_unusable
from rg_env.off_loop import breathe, no_breath, off_loop

PROMPT_MASK = -100
PROMPT_LOGPROB = 1.0

FEW_TOKENS = 4096
"""So many are turned into text in a millisecond, in place."""

FEW_CHARS = 2048
"""Likewise for text that is turned into tokens."""


@dataclasses.dataclass(frozen=True)
class Completion:
    """One completion; `tokens`, `masks` and `logprobs` have equal lengths.

    Attributes:
        text: What the model wrote.
        finish_reason: "stop", "length" or the server's word.
        tokens: Prompt and completion.
        masks: -100 for the prompt, the token id for the completion.
        logprobs: 1.0 for the prompt; None where the server gives none.
        unusable: Why it is of no use; None where it is of use.
    """

    text: str
    finish_reason: str | None
    tokens: list[int]
    masks: list[int]
    logprobs: list[float] | None
    unusable: str | None = None


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


# -- of token ids ----------------------------------------------------------------------


def _as_array(ids: list[int]) -> np.ndarray:
    """Return token ids as decode() takes them without a look at each one first.

    Raises:
        BadReplyError: One is no whole number.
    """
    array = np.asarray(ids)
    if ids and array.dtype.kind != "i":
        raise BadReplyError("a token id is no whole number")
    return array.astype(np.int64)


async def from_tokens(tokenizer: Any, reply: TokenReply) -> list[Completion]:
    """Return the completions of a reply of token ids.

    Args:
        tokenizer: Ours.
        reply: As a client returns it.

    Raises:
        BadReplyError: A token id is no whole number.
    """
    if sum(map(len, reply[1])) <= FEW_TOKENS:
        return _decoded(tokenizer, reply, no_breath)
    return await off_loop(_decoded, tokenizer, reply, breathe)


def _decoded(
    tokenizer: Any, reply: TokenReply, breathe: Callable[[], None]
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
            unusable=why_unusable(ids, of_ids, reason),
        )
        completions.append(completion)
        breathe()
    return completions


# -- of texts --------------------------------------------------------------------------


async def from_chat(tokenizer: Any, prompt: Prompt, reply: Any) -> list[Completion]:
    """Return the completions of a chat.

    Args:
        tokenizer: Ours.
        prompt: What was asked.
        reply: As openai's client has read it.
    """
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
    """Return completions that the framework's proxy server asks for."""
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
            unusable=why_unusable(node.tokens, node.logprobs, choice.finish_reason),
        )
        for choice, node in zip(reply.choices, nodes, strict=True)
    ]
