"""The text of a chat reply, with the thinking that a reasoning parser took out of it.

A server with such a parser (vLLM's `--reasoning-parser`, many endpoints) says what a
model thought beside what it answered, as `reasoning_content` or `reasoning`. Put back
it is what the model wrote, which rows, dump files and the search for an answer need.
"""

from __future__ import annotations

from typing import Any

import orjson
from openai.types.chat import ChatCompletion

from rg_env.inference.reply_reasons import (
    LONGEST_SAID,
    UnusableReplyError,
    told_error,
)

THINK, END_THINK = "<think>", "</think>"
WITHHELD = "content_filter"
REASONING = ("reasoning_content", "reasoning")


def _reasoning(message: Any) -> str:
    for name in REASONING:
        told = getattr(message, name, None)
        if isinstance(told, str) and told:
            return told
    return ""


def read_chat(body: bytes) -> ChatCompletion:
    """Return the chat completion of a body, as openai's client reads it.

    Raises:
        UnusableReplyError: It tells of an error.
        ValueError: It is something else.
    """
    reply = orjson.loads(body)
    error = told_error(reply)
    if error is not None:
        raise UnusableReplyError(error)
    if not isinstance(reply, dict) or not isinstance(reply.get("choices"), list):
        found = repr(reply)[:LONGEST_SAID]
        raise ValueError(f"the reply is no chat completion but {found}")
    return ChatCompletion.construct(**reply)


def usable_choices(reply: Any) -> list[Any]:
    """Return the choices of a chat that hold what the model wrote.

    Raises:
        UnusableReplyError: There are choices, and none of them does.
    """
    why = [why_withheld(choice) for choice in reply.choices]
    if why and None not in why:
        raise UnusableReplyError(f"the completion {why[0]}")
    both = zip(reply.choices, why, strict=True)
    return [choice for choice, reason in both if reason is None]


def why_withheld(choice: Any) -> str | None:
    """Return why a choice is not what the model wrote, None where it is."""
    if choice.finish_reason == WITHHELD:
        return f"was withheld by the server (finish_reason {WITHHELD})"
    is_cut = choice.finish_reason == "length"
    if _content(choice.message) is None and not (_reasoning(choice.message) or is_cut):
        return f"has no content (finish_reason {choice.finish_reason})"
    return None


def _content(message: Any) -> str | None:
    """Return the text of a message, a list of its parts joined; None without one."""
    content = message.content
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(text for text in parts if isinstance(text, str))
    told = getattr(message, "refusal", None) if content is None else content
    return told if isinstance(told, str) else None


def whole_text(choice: Any, *, thinking_open: bool) -> str:
    """Return what the model wrote.

    Args:
        choice: Of the reply, as openai's client has read it.
        thinking_open: Whether the prompt has begun the thinking.
    """
    content = _content(choice.message) or ""
    reasoning = _reasoning(choice.message)
    if not reasoning or END_THINK in content:
        return content
    begin = "" if thinking_open or reasoning.startswith(THINK) else THINK
    # Cut in the midst of its thinking, it never ended that.
    is_cut = not content and choice.finish_reason == "length"
    return f"{begin}{reasoning}{'' if is_cut else END_THINK}{content}"
