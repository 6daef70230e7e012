"""The text of a chat reply, with the thinking that a reasoning parser took out of it.

A server with such a parser (vLLM's `--reasoning-parser`, many endpoints) says what a
model thought beside what it answered, as `reasoning_content` or `reasoning`. Put back
it is what the model wrote, which rows, dump files and the search for an answer need.
"""

from __future__ import annotations

from typing import Any

THINK, END_THINK = "<think>", "</think>"
REASONING = ("reasoning_content", "reasoning")


def _reasoning(message: Any) -> str:
    for name in REASONING:
        told = getattr(message, name, None)
        if isinstance(told, str) and told:
            return told
    return ""


def whole_text(choice: Any, *, thinking_open: bool) -> str:
    """Return what the model wrote.

    Args:
        choice: Of the reply, as openai's client has read it.
        thinking_open: Whether the prompt has begun the thinking.
    """
    content: str = choice.message.content or ""
    reasoning = _reasoning(choice.message)
    if not reasoning or END_THINK in content:
        return content
    begin = "" if thinking_open or reasoning.startswith(THINK) else THINK
    # Cut in the midst of its thinking, it never ended that.
    is_cut = not content and choice.finish_reason == "length"
    return f"{begin}{reasoning}{'' if is_cut else END_THINK}{content}"
