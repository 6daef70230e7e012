"""Prompts: an item's messages in the model's chat template, and their tokens."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from rg_env.off_loop import off_loop
from rg_env.scoring.extraction import THINKING
from rg_env.scoring.prompt import Message

MAX_PROMPTS = 256
SHORT_PROMPT_CHARS = 1536
"""A prompt up to here is rendered and encoded in half a millisecond, in place."""


@dataclasses.dataclass(frozen=True)
class Prompt:
    """An item's messages, rendered.

    Attributes:
        messages: System and user.
        tokens: Prompt token ids, as the server will count them.
        thinking_open: Whether the template ends the prompt with `<think>` or the like.
    """

    messages: Sequence[Message]
    tokens: Sequence[int]
    thinking_open: bool


def with_one_bos(tokenizer: Any, tokens: list[int]) -> list[int]:
    """Return tokens with one BOS, where the template and the tokenizer add one each."""
    has_two = len(tokens) >= 2 and tokens[0] == tokenizer.bos_token_id == tokens[1]
    return tokens[1:] if has_two else tokens


def render_prompt(
    tokenizer: Any,
    messages: Sequence[Message],
    template_kwargs: Mapping[str, Any] = MappingProxyType({}),
) -> Prompt:
    """Render messages as the framework's managed server does, and count their tokens.

    The chat template also gets `template_kwargs`.
    """
    text: str = tokenizer.apply_chat_template(
        list(messages), tokenize=False, add_generation_prompt=True, **template_kwargs
    )
    tokens = with_one_bos(tokenizer, tokenizer.encode(text, add_special_tokens=True))
    opened = text[-40:].rstrip().lower().endswith(tuple(THINKING))
    return Prompt(messages, tokens, opened)


class Prompts:
    """Renders prompts and caches them, because a prompt is needed twice."""

    def __init__(self, tokenizer: Any, template_kwargs: Mapping[str, Any]) -> None:
        @functools.lru_cache(MAX_PROMPTS)
        def rendered(*messages: tuple[tuple[str, str], ...]) -> Prompt:
            plain = [dict(message) for message in messages]
            return render_prompt(tokenizer, plain, template_kwargs)

        self._rendered = rendered

    async def render(self, messages: Sequence[Mapping[str, str]]) -> Prompt:
        """Return a prompt, rendered off the event loop where it is long."""
        key = [tuple(sorted(dict(message).items())) for message in messages]
        if len(repr(key)) > SHORT_PROMPT_CHARS:
            return await off_loop(self._rendered, *key)
        await asyncio.sleep(0)  # several in a row must not add up
        return self._rendered(*key)
