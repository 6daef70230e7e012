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
from rg_env.inference.connection import RequestFailedError, extra_body_of
from rg_env.inference.probe import ProbeRequest
from rg_env.inference.prompts import Prompts, render_prompt
from rg_env.inference.servers import Servers
from rg_env.reward.prompt import built_in_prompt
from rg_env.run.group import Ending, Group
from rg_env.run.loop import Lost
from rg_env.settings.environment_settings import PUBLISHED
from rg_env.settings.program_settings import TEMPLATE_KWARGS
from rg_env.stream.item import Item, Message, build_messages
from rg_env.stream.prefetch import NoItemsError, PrefetchedItems

logger = logging.getLogger(__name__)

# Items in a row without room for an answer before the run ends.
LONG_PROMPTS_IN_A_ROW = 200

# The framework's managed server writes them.
PROMPT_MASK = -100
PROMPT_LOGPROB = 1.0


def completion_tokens(mask: Sequence[int]) -> int:
    """Return the length of the completion in a sequence of this mask, in tokens."""
    # A subclass may send arrays, which have no `count`.
    return len(mask) - list(mask).count(PROMPT_MASK)


class RolloutRequests:
    """The prompts of items, and how their completions are sampled."""

    def __init__(
        self,
        config: ReasoningGymEnvConfig,
        tokenizer: Any,
        server: Any,
    ) -> None:
        self._config = config
        self._tokenizer = tokenizer
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

    async def has_room(self, messages: Sequence[Message], limit_tokens: int) -> bool:
        """Say whether a prompt leaves room for an answer."""
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
            if await self.has_room(self.messages(question, evaluates=True), limit):
                return
        if questions:
            reason = f"{limit} tokens leave no room for an answer to any of the items"
            raise SettingError(reason, "env.eval_max_token_length")

    def probe_request(self, kind: str) -> ProbeRequest:
        """Return the request with which servers are probed: a short question."""
        sampling = self.sampling("eval" if kind == "evaluate" else "train")
        # Two show whether a server returns as many as it is asked for.
        sampling["n"] = min(2, sampling["n"])
        messages = self.messages("What is 2 + 2?")
        prompt = render_prompt(self._tokenizer, messages, self._template_kwargs)
        return ProbeRequest(prompt, sampling)

    def sampling(self, split: str) -> dict[str, Any]:
        """Return how the completions of train or eval are sampled, `n` of each item."""
        config = self._config
        if split == "eval":
            return {"n": 1, "temperature": config.eval_temperature, "top_p": 1.0}
        sampling = {"temperature": config.temperature, "top_p": config.top_p}
        return {"n": config.group_size, **sampling}


class NewItems:
    """The source of new items with prompts that leave room for an answer.

    Args:
        requests: Makes the prompts.
        limit_tokens: Returns the longest sequence that may be generated.
        events: Counts `prompts_too_long`.
    """

    def __init__(
        self,
        requests: RolloutRequests,
        limit_tokens: Callable[[], int],
        events: Counter[str],
    ) -> None:
        self._requests = requests
        self._limit_tokens = limit_tokens
        self._events = events
        self.items: PrefetchedItems | None = None

    async def next(self) -> tuple[Sequence[Message], Mapping[str, Any], Item]:
        """Return messages, entry and dataset of the next item that fits.

        Raises:
            NoItemsError: `LONG_PROMPTS_IN_A_ROW` prompts did not fit.
        """
        if self.items is None:
            raise RuntimeError("this needs setup() first")
        limit = self._limit_tokens()
        for _ in range(LONG_PROMPTS_IN_A_ROW):
            item = await self.items.next()
            messages = self._requests.messages(item.question)
            if await self._requests.has_room(messages, limit):
                logger.debug("next item %r", item)
                return messages, item.entry, item
            self._events["prompts_too_long"] += 1
        raise NoItemsError(
            f"{LONG_PROMPTS_IN_A_ROW} prompts in a row reach the limit of"
            f" {limit} tokens; raise env.max_token_length or the trainer's"
        )


class Completions:
    """The model of a run: the inference servers.

    Args:
        requests: Makes the prompts and the rollouts.
        servers: They are queried, and told of failures.
        split: train or eval, which decides how completions are sampled.
        limit_tokens: Returns the longest sequence that may be generated.
    """

    def __init__(
        self,
        requests: RolloutRequests,
        servers: Servers,
        split: str,
        limit_tokens: Callable[[], int],
    ) -> None:
        self._requests = requests
        self._servers = servers
        self._split = split
        self._limit_tokens = limit_tokens

    @property
    def completions(self) -> int:
        """The number of completions of each item."""
        return int(self._requests.sampling(self._split)["n"])

    async def complete(self, group: Group, item: Any = None) -> None:
        """Set the completions of a group's item, or of another item.

        Raises:
            Lost: No server gave usable completions.
        """
        item = group.item if item is None else item
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
        rendered = await self._requests.prompts.render(messages)
        prompt = dataclasses.replace(rendered, item=item, first=first)
        given = list(prompt.tokens)
        sampled = self._requests.sampling(self._split)
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
