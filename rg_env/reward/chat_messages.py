"""The text of chat messages, with the thinking that a server split off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

THINKING_FIELDS = ("reasoning_content", "reasoning", "thinking")
"""Fields of a message in which servers return its thinking."""


def rejoin_thinking(
    message: Mapping[str, Any],
    *,
    thinking_open: bool = False,
    is_truncated: bool = False,
) -> str | None:
    """Return the text of a message, with the thinking that a server split off.

    Args:
        message: A message of a chat. Its text is `content`.
        thinking_open: Whether the prompt ended with an opening tag of thinking.
        is_truncated: Whether the completion reached its token limit. Without content,
            its thinking then has no closing tag.

    Returns:
        The text; None if the message has neither content nor thinking.

    Example:
        >>> rejoin_thinking({"content": "<answer>5</answer>", "reasoning": "2+3"})
        '<think>2+3</think><answer>5</answer>'
    """
    content = message.get("content")
    found = map(message.get, THINKING_FIELDS)
    thinking = next((text for text in found if text and isinstance(text, str)), None)
    if thinking is None or "</think>" in str(content):
        return content
    is_open = thinking_open or thinking.startswith("<think>")
    opening = "" if is_open else "<think>"
    closing = "" if is_truncated and not content else "</think>"
    return f"{opening}{thinking}{closing}{content or ''}"


def completion_text(completion: str | Sequence[Mapping[str, Any]]) -> str:
    """Return the text of a completion, which may be a list of messages.

    The last message counts, with its thinking; see `rejoin_thinking`.
    """
    if isinstance(completion, str):
        return completion
    last = completion[-1] if completion else {}
    return str(rejoin_thinking(last) or "")
