"""Prompts: the messages of an item as the token ids that a server completes."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from rg_env.executor import in_thread
from rg_env.reward.extraction import opens_thinking

# A prompt up to this length is rendered on the event loop, in half a millisecond.
SHORT_PROMPT_CHARS = 1536


@dataclasses.dataclass(frozen=True)
class Prompt:
    """The messages of an item, rendered to token ids.

    Attributes:
        thinking_open: Whether the template ends the prompt with `<think>` or the like.
        item: The item, for the simulated model.
        first: The number of the first completion among all those of the item.
    """

    messages: Sequence[Mapping[str, str]]
    tokens: Sequence[int]
    thinking_open: bool
    item: Any = None
    first: int = 0


def with_one_bos(tokenizer: Any, tokens: list[int]) -> list[int]:
    """Return tokens with one BOS if the template and the tokenizer each added one."""
    has_two = tokens[:2] == [tokenizer.bos_token_id] * 2
    return tokens[1:] if has_two else tokens


def render_prompt(
    tokenizer: Any,
    messages: Sequence[Mapping[str, str]],
    template_kwargs: Mapping[str, Any] = MappingProxyType({}),
) -> Prompt:
    """Render messages to a prompt, as the framework's managed server does."""
    text: str = tokenizer.apply_chat_template(
        list(messages), tokenize=False, add_generation_prompt=True, **template_kwargs
    )
    tokens = with_one_bos(tokenizer, tokenizer.encode(text, add_special_tokens=True))
    return Prompt(messages, tokens, opens_thinking(text))


class Prompts:
    """Renders prompts and caches them."""

    def __init__(self, tokenizer: Any, template_kwargs: Mapping[str, Any]) -> None:
        # A prompt is needed twice: to see whether it leaves room, and to send it.
        @functools.lru_cache(256)
        def render_cached(*messages: tuple[tuple[str, str], ...]) -> Prompt:
            return render_prompt(tokenizer, [*map(dict, messages)], template_kwargs)

        self._render_cached = render_cached

    def render_now(self, messages: Sequence[Mapping[str, str]]) -> Prompt:
        """Render messages in this thread."""
        keys = (tuple(sorted(dict(each).items())) for each in messages)
        return self._render_cached(*keys)

    async def render(self, messages: Sequence[Mapping[str, str]]) -> Prompt:
        """Render messages; if they are long, in another thread."""
        if len(repr(messages)) > SHORT_PROMPT_CHARS:
            return await in_thread(self.render_now, messages)
        await asyncio.sleep(0)  # other tasks may run between several prompts
        return self.render_now(messages)
