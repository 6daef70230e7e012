"""Prompts: an item's messages in the model's chat template, and their tokens."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from types import MappingProxyType, SimpleNamespace
from typing import Any

from atroposlib.envs.server_handling.managed_server import ManagedServer

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


def render_prompt(
    tokenizer: Any,
    messages: Sequence[Message],
    template_kwargs: Mapping[str, Any] = MappingProxyType({}),
) -> Prompt:
    """Render messages as the framework's managed server does, and count their tokens.

    The template and the tokenizer may both add a BOS token. The servers remove one of
    them, so it is not counted here either. The chat template also gets
    `template_kwargs`.
    """
    render = functools.partial(tokenizer.apply_chat_template, **template_kwargs)
    managed = ManagedServer(None, SimpleNamespace(apply_chat_template=render))
    text: str = managed._convert_messages_to_prompt(list(messages))
    tokens = tokenizer.encode(text, add_special_tokens=True)
    if len(tokens) >= 2 and tokens[0] == tokenizer.bos_token_id == tokens[1]:
        tokens = tokens[1:]
    opened = text[-40:].rstrip().lower().endswith(tuple(THINKING))
    return Prompt(messages, tokens, opened)


class Prompts:
    """Renders prompts and caches them, because a prompt is needed twice."""

    def __init__(
        self,
        tokenizer: Any,
        template_kwargs: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self._tokenizer = tokenizer
        self._template_kwargs = template_kwargs
        self._newest: OrderedDict[str, Prompt] = OrderedDict()

    async def render(self, messages: Sequence[Mapping[str, str]]) -> Prompt:
        """Return a prompt, rendered off the event loop where it is long."""
        plain: list[Any] = [dict(message) for message in messages]
        key = repr(plain)
        prompt = self._newest.pop(key, None)
        how = (self._tokenizer, plain, self._template_kwargs)
        if prompt is None and len(key) <= SHORT_PROMPT_CHARS:
            prompt = render_prompt(*how)
            await asyncio.sleep(0)  # several in a row must not add up
        elif prompt is None:
            prompt = await off_loop(render_prompt, *how)
        self._newest[key] = prompt
        if len(self._newest) > MAX_PROMPTS:
            self._newest.popitem(last=False)
        return prompt
