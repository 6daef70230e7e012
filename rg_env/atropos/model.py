"""The model of a run: prompts of items, and the servers that complete them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from rg_env.atropos.config import ReasoningGymEnvConfig
from rg_env.errors import SettingError
from rg_env.inference.completions import Sampling
from rg_env.inference.connection import RequestFailedError, extra_body_of
from rg_env.inference.probe import ProbeRequest
from rg_env.inference.prompts import Prompts
from rg_env.inference.servers import Servers
from rg_env.reward.prompt import choose_prompt, list_prompts
from rg_env.run.group import Ending, Group
from rg_env.run.group_loop import Lost
from rg_env.settings.environment_settings import PUBLISHED
from rg_env.settings.program_settings import TEMPLATE_KWARGS
from rg_env.stream.item import Message, build_messages

# The framework's managed server writes them.
PROMPT_MASK = -100
PROMPT_LOGPROB = 1.0


def completion_tokens(mask: Sequence[int]) -> int:
    """Return the length of the completion in a sequence of this mask, in tokens.

    >>> completion_tokens([-100, -100, 7, 8, 9])
    3
    """
    # A subclass may send arrays, which have no `count`.
    return len(mask) - list(mask).count(PROMPT_MASK)


class ItemPrompts:
    """The prompts of items, and how their completions are sampled."""

    def __init__(
        self,
        config: ReasoningGymEnvConfig,
        tokenizer: Any,
        server: Any,
    ) -> None:
        self._config = config
        template_kwargs = extra_body_of(server).get(TEMPLATE_KWARGS) or {}
        self.prompts = Prompts(tokenizer, template_kwargs)
        self.published_prompt = ""

    def take_published_prompt(self, prompt: str) -> None:
        """Take the prompt of the installed library, which may have none."""
        if self._config.eval_system_prompt == PUBLISHED and not prompt:
            reason = "the installed reasoning-gym has no published prompt"
            raise SettingError(reason, "env.eval_system_prompt")
        self.published_prompt = prompt

    def messages(
        self, question: str, seed: int = 0, *, evaluates: bool = False
    ) -> tuple[Message, Message]:
        """Return the system and the user message of a question, by its item's seed."""
        config = self._config
        own = choose_prompt(config.system_prompt, config.answer_format, seed)
        if evaluates and config.eval_system_prompt is not None:
            own = config.eval_system_prompt
            own = self.published_prompt if own == PUBLISHED else own
        before = config.custom_thinking_prompt
        return build_messages(question, f"{before}\n\n{own}" if before else own)

    async def has_room(self, messages: Sequence[Message], limit_tokens: int) -> bool:
        """Say whether a prompt leaves room for an answer."""
        return len((await self.prompts.render(messages)).tokens) < limit_tokens

    def check_limit(self, limit_tokens: int) -> None:
        """Refuse limits that the shortest question reaches: ours, the trainer's."""
        config = self._config
        is_own = config.max_token_length == limit_tokens
        name = "env.max_token_length" if is_own else "the trainer's max_token_len"
        limits = {name: limit_tokens}
        if config.eval_max_token_length is not None:
            limits["env.eval_max_token_length"] = config.eval_max_token_length
        seeds = range(len(list_prompts(config.system_prompt, config.answer_format)))
        for name, limit in limits.items():
            is_eval = "eval" in name
            prompts = [self.messages("?", seed, evaluates=is_eval) for seed in seeds]
            longest = max(len(self.prompts.render_now(each).tokens) for each in prompts)
            if longest >= limit:
                raise SettingError(
                    f"{limit} tokens leave no room for an answer: the prompt of the"
                    f" shortest question takes {longest}",
                    name,
                )

    async def check_evaluation(
        self, prompts: Sequence[Sequence[Message]], limit: int
    ) -> None:
        """Refuse a limit in tokens that the prompts of all evaluation items reach."""
        for messages in prompts:
            if await self.has_room(messages, limit):
                return
        if prompts:
            reason = f"{limit} tokens leave no room for an answer to any of the items"
            raise SettingError(reason, "env.eval_max_token_length")

    def probe_request(self, kind: str) -> ProbeRequest:
        """Return the request with which servers are probed: a short question."""
        sampling = self.sampling("eval" if kind == "evaluate" else "train")
        # Two show whether a server returns as many as it is asked for.
        sampling["n"] = min(2, sampling["n"])
        prompt = self.prompts.render_now(self.messages("What is 2 + 2?"))
        return ProbeRequest(prompt, sampling)

    def sampling(self, split: str) -> dict[str, Any]:
        """Return how the completions of train or eval are sampled, `n` of each item."""
        config = self._config
        if split == "eval":
            return {"n": 1, "temperature": config.eval_temperature, "top_p": 1.0}
        sampling = {"temperature": config.temperature, "top_p": config.top_p}
        return {"n": config.group_size, **sampling}


class Completions:
    """The model of a run: the inference servers.

    Args:
        prompts: Makes them.
        servers: They are queried, and told of failures.
        split: train or eval, which decides how completions are sampled.
        limit_tokens: Returns the longest sequence that may be generated.
    """

    def __init__(
        self,
        prompts: ItemPrompts,
        servers: Servers,
        split: str,
        limit_tokens: Callable[[], int],
    ) -> None:
        self._prompts = prompts
        self._servers = servers
        self._split = split
        self._limit_tokens = limit_tokens

    async def complete(self, group: Group, item: Any = None) -> None:
        """Query the completions of a group's item, or of another item.

        Raises:
            Lost: No server gave usable completions.
        """
        item = group.item if item is None else item
        group.query(self._prompts.sampling(self._split)["n"])
        try:
            group.completions = await self.query(item, group.on_reply, group.first)
            group.on_reply()  # the client of a subclass may not have called it
        except RequestFailedError as error:
            # An outage is not the fault of the item, and costs it no try.
            is_outage = self._servers.is_down and not self._servers.gave_up.is_set()
            raise Lost(
                Ending.UNANSWERED, str(error), is_items_fault=not is_outage
            ) from error

    async def query(
        self, item: Any, on_reply: Callable[[], None] | None = None, first: int = 0
    ) -> list[dict[str, Any]]:
        """Return rollouts of an item, as the hook `score` takes them, shape (G,).

        `first` is the number of the first completion.
        """
        messages, entry, dataset = item
        rendered = await self._prompts.prompts.render(messages)
        prompt = dataclasses.replace(rendered, item=item, first=first)
        given = list(prompt.tokens)
        sampled = self._prompts.sampling(self._split)
        n = sampled.pop("n")
        # An evaluation item may leave no room, and servers refuse 0 tokens.
        room = max(1, self._limit_tokens() - len(given))
        sampling = Sampling(max_tokens=room, split=self._split, **sampled)
        completions = await self._servers.generate(prompt, n, sampling, on_reply)
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
