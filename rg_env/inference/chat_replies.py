"""A chat reply: whether it is one, and what the model wrote.

A server with a reasoning parser (vLLM's `--reasoning-parser`, many endpoints) says what
a model thought beside what it answered, as `reasoning_content` or `reasoning`. Put back
it is what the model wrote, which rows, dump files and the search for an answer need.
"""

from __future__ import annotations

import json
from typing import Any

from openai.types.chat import ChatCompletion

from rg_env.inference.replies import Breathe, why_cut_off

THINK, END_THINK = "<think>", "</think>"
REASONING = ("reasoning_content", "reasoning")


def read_chat(body: bytes, breathe: Breathe) -> ChatCompletion:
    """Read the reply of a chat into what openai's client makes of it.

    Raises:
        Exception: It is none; one of `replies.NO_SUCH_FORM`.
    """
    value = json.loads(body)  # orjson refuses half a pair of UTF-16
    if not all(isinstance(choice["message"], dict) for choice in value["choices"]):
        raise TypeError("a choice without a message")
    return ChatCompletion.construct(**value)


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


def why_no_answer(choice: Any) -> str | None:
    """Return why a choice holds no answer of the model; None where it does."""
    cut_off = why_cut_off(choice.finish_reason)
    if cut_off is not None or _content(choice.message) is not None:
        return cut_off
    # A model may use up its tokens with thinking that nobody is told of.
    has_thought = _reasoning(choice.message) or choice.finish_reason == "length"
    return None if has_thought else "no content"


def whole_text(choice: Any, *, thinking_open: bool) -> str:
    """Return what the model wrote.

    Args:
        choice: Of the reply, with an answer.
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
