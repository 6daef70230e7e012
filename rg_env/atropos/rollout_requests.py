"""Prompts of items, and the rollouts that the servers complete them to."""

from __future__ import annotations

import dataclasses
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rg_env.atropos.config import ReasoningGymEnvConfig
from rg_env.errors import SettingError
from rg_env.inference.completions import Sampling
from rg_env.inference.connection import extra_body_of
from rg_env.inference.probe import ProbeRequest
from rg_env.inference.prompts import Prompts, render_prompt
from rg_env.inference.servers import Servers
from rg_env.reward.prompt import built_in_prompt
from rg_env.settings.environment_settings import PUBLISHED
from rg_env.settings.program_settings import TEMPLATE_KWARGS
from rg_env.stream.item import Item, Message, build_messages
from rg_env.stream.prefetch import NoItemsError, PrefetchedItems

logger = logging.getLogger(__name__)

# Items whose prompt leaves no room before the run ends.
LONG_PROMPTS_IN_A_ROW = 200

# What the framework's managed server writes.
PROMPT_MASK = -100
PROMPT_LOGPROB = 1.0


def completion_tokens(mask: Sequence[int]) -> int:
    """Return the length of the completion in a sequence of this mask, in tokens."""
    # A subclass may send arrays, which have no `count`.
    return len(mask) - list(mask).count(PROMPT_MASK)


class RolloutRequests:
    """Queries the inference servers for rollouts."""

    def __init__(
        self,
        config: ReasoningGymEnvConfig,
        tokenizer: Any,
        servers: Servers,
        server: Any,
    ) -> None:
        self._config = config
        self._tokenizer = tokenizer
        self._servers = servers
        self._template_kwargs = extra_body_of(server).get(TEMPLATE_KWARGS) or {}
        self.prompts = Prompts(tokenizer, self._template_kwargs)
        self.published_prompt = ""

    def take_published_prompt(self, prompt: str) -> None:
        """Take the prompt of the installed library, which may have none."""
        if self._config.eval_system_prompt == PUBLISHED and not prompt:
            reason = "the installed reasoning-gym has no published prompt"
            raise SettingError(reason, "env.eval_system_prompt")
        self.published_prompt = prompt

    def messages(
        self, question: str, *, evaluates: bool = False
    ) -> tuple[Message, Message]:
        """Return the system and the user message of a question."""
        own = self._config.system_prompt
        own = own or built_in_prompt(self._config.answer_format)
        if evaluates and self._config.eval_system_prompt is not None:
            own = self._config.eval_system_prompt
            own = self.published_prompt if own == PUBLISHED else own
        before = self._config.custom_thinking_prompt
        return build_messages(question, f"{before}\n\n{own}" if before else own)

    async def next_that_fits(
        self, items: PrefetchedItems, events: Counter[str], limit_tokens: int
    ) -> tuple[Sequence[Message], Mapping[str, Any], Item]:
        """Return messages, entry, dataset of the next item whose prompt leaves room."""
        for _ in range(LONG_PROMPTS_IN_A_ROW):
            item = await items.next()
            messages = self.messages(item.question)
            if await self._has_room(messages, limit_tokens):
                logger.debug("next item %r", item)
                return messages, item.entry, item
            events["prompts_too_long"] += 1
        raise NoItemsError(
            f"{LONG_PROMPTS_IN_A_ROW} prompts in a row reach the limit of"
            f" {limit_tokens} tokens; raise env.max_token_length or the trainer's"
        )

    async def _has_room(self, messages: Sequence[Message], limit_tokens: int) -> bool:
        return len((await self.prompts.render(messages)).tokens) < limit_tokens

    def check_limit(self, limit_tokens: int) -> None:
        """Refuse limits that the shortest question reaches: ours, the trainer's."""
        is_own = self._config.max_token_length == limit_tokens
        name = "env.max_token_length" if is_own else "the trainer's max_token_len"
        limits = {name: limit_tokens}
        if (own := self._config.eval_max_token_length) is not None:
            limits["env.eval_max_token_length"] = own
        for name, limit in limits.items():
            messages = self.messages("?", evaluates="eval" in name)
            prompt = render_prompt(self._tokenizer, messages, self._template_kwargs)
            if len(prompt.tokens) >= limit:
                raise SettingError(
                    f"{limit} tokens leave no room for an answer: the prompt of the"
                    f" shortest question takes {len(prompt.tokens)}",
                    name,
                )

    async def check_evaluation(self, questions: Sequence[str], limit: int) -> None:
        """Refuse a limit in tokens that the prompts of all evaluation items reach."""
        for question in questions:
            if await self._has_room(self.messages(question, evaluates=True), limit):
                return
        if questions:
            reason = f"{limit} tokens leave no room for an answer to any of the items"
            raise SettingError(reason, "env.eval_max_token_length")

    def probe_request(self, kind: str) -> ProbeRequest:
        """Return the request with which servers are probed: a short question."""
        sampling = self._sampling("eval" if kind == "evaluate" else "train")
        # Two show whether a server returns as many as it is asked for.
        sampling["n"] = min(2, sampling["n"])
        messages = self.messages("What is 2 + 2?")
        prompt = render_prompt(self._tokenizer, messages, self._template_kwargs)
        return ProbeRequest(prompt, sampling)

    def _sampling(self, split: str) -> dict[str, Any]:
        config = self._config
        if split == "eval":
            return {"n": 1, "temperature": config.eval_temperature, "top_p": 1.0}
        sampling = {"temperature": config.temperature, "top_p": config.top_p}
        return {"n": config.group_size, **sampling}

    async def query(
        self,
        item: Any,
        limit_tokens: int,
        on_reply: Callable[[], None] | None = None,
        *,
        split: str = "train",
        first: int = 0,
    ) -> list[dict[str, Any]]:
        """Return what the hook `score` takes of each completion of an item, shape (G,).

        `limit_tokens` is the longest sequence; `split` is train or eval; `first` is the
        number of the first completion.
        """
        messages, entry, dataset = item
        rendered = await self.prompts.render(messages)
        prompt = dataclasses.replace(rendered, item=item, first=first)
        how = self._sampling(split)
        # An evaluation item may leave no room, and servers refuse 0 tokens.
        n, room = how.pop("n"), max(1, limit_tokens - len(prompt.tokens))
        sampling = Sampling(max_tokens=room, split=split, **how)
        completions = await self._servers.generate(prompt, n, sampling, on_reply)
        given = list(prompt.tokens)
        return [
            {
                "messages": [
                    *prompt.messages,
                    {"role": "assistant", "content": completion.text},
                ],
                "rg_item": entry,
                "dataset_obj": dataset,
                "finish_reason": completion.finish_reason,
                "tokens": given + completion.tokens,
                "masks": [PROMPT_MASK] * len(given) + completion.tokens,
                "logprobs": completion.logprobs
                and [PROMPT_LOGPROB] * len(given) + completion.logprobs,
                "thinking_open": prompt.thinking_open,
            }
            for completion in completions
        ]
