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
from rg_env.run.group import Group
from rg_env.run.group_loop import Lost
from rg_env.run.ledger import Ending
from rg_env.settings.environment_settings import PUBLISHED
from rg_env.settings.server_and_launch_settings import TEMPLATE_KWARGS
from rg_env.stream.item import Message, build_messages

# Values for the tokens of a prompt, as the framework's managed server writes them.
PROMPT_MASK = -100
PROMPT_LOGPROB = 1.0


def completion_tokens(mask: Sequence[int]) -> int:
    """Return how many tokens of a sequence with this mask belong to its completion.

    >>> completion_tokens([-100, -100, 7, 8, 9])
    3
    """
    # A subclass may send arrays, which have no `count`.
    return len(mask) - list(mask).count(PROMPT_MASK)


class ItemPrompts:
    """The prompts of items, and the sampling of their completions."""

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
        """Keep the published prompt of the installed library, "" if it has none.

        Raises:
            SettingError: The settings ask for it, and there is none.
        """
        if self._config.eval_system_prompt == PUBLISHED and not prompt:
            reason = "the installed reasoning-gym has no published prompt"
            raise SettingError(reason, "env.eval_system_prompt")
        self.published_prompt = prompt

    def messages(
        self, question: str, seed: int = 0, *, evaluates: bool = False
    ) -> tuple[Message, Message]:
        """Return the system and the user message of a question.

        The seed of its item chooses one of several system prompts.
        """
        config = self._config
        prompt = choose_prompt(config.system_prompt, config.answer_format, seed)
        if evaluates and config.eval_system_prompt is not None:
            prompt = config.eval_system_prompt
            if prompt == PUBLISHED:
                prompt = self.published_prompt
        if config.custom_thinking_prompt:
            prompt = f"{config.custom_thinking_prompt}\n\n{prompt}"
        return build_messages(question, prompt)

    async def has_room(self, messages: Sequence[Message], limit_tokens: int) -> bool:
        """Return whether a prompt leaves room for an answer."""
        return len((await self.prompts.render(messages)).tokens) < limit_tokens

    def check_limit(self, limit_tokens: int) -> None:
        """Refuse limits that the prompt of the shortest question reaches."""
        config = self._config
        name = "the trainer's max_token_len"
        if config.max_token_length == limit_tokens:
            name = "env.max_token_length"
        self._check_room(name, limit_tokens, evaluates=False)
        if config.eval_max_token_length is not None:
            name = "env.eval_max_token_length"
            self._check_room(name, config.eval_max_token_length, evaluates=True)

    def _check_room(self, name: str, limit_tokens: int, *, evaluates: bool) -> None:
        config = self._config
        seeds = range(len(list_prompts(config.system_prompt, config.answer_format)))
        prompts = [self.messages("?", seed, evaluates=evaluates) for seed in seeds]
        longest = max(len(self.prompts.render_now(each).tokens) for each in prompts)
        if longest >= limit_tokens:
            raise SettingError(
                f"{limit_tokens} tokens leave no room for an answer: the prompt of the"
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
        """Return the request that probes the servers of a command: a short question."""
        sampling = self.sampling("eval" if kind == "evaluate" else "train")
        # Two show whether a server returns as many completions as are requested.
        sampling["n"] = min(2, sampling["n"])
        prompt = self.prompts.render_now(self.messages("What is 2 + 2?"))
        return ProbeRequest(prompt, sampling)

    def sampling(self, split: str) -> dict[str, Any]:
        """Return how a split, "train" or "eval", is sampled; `n` is for each item."""
        config = self._config
        if split == "eval":
            return {"n": 1, "temperature": config.eval_temperature, "top_p": 1.0}
        return {
            "n": config.group_size,
            "temperature": config.temperature,
            "top_p": config.top_p,
        }


@dataclasses.dataclass
class Completions:
    """The model of a run: the inference servers.

    Attributes:
        prompts: Renders the prompts.
        servers: Generate the completions.
        split: "train" or "eval", which decides the sampling.
        limit_tokens: Returns the length of the longest sequence, in tokens.
    """

    prompts: ItemPrompts
    servers: Servers
    split: str
    limit_tokens: Callable[[], int]

    async def complete(self, group: Group, item: Any = None) -> None:
        """Query the servers for the completions of a group.

        Args:
            group: Gets the completions.
            item: The item to complete, if it is not that of the group.

        Raises:
            Lost: No server gave usable completions.
        """
        item = group.item if item is None else item
        group.query(self.prompts.sampling(self.split)["n"])
        try:
            group.completions = await self.query(
                item, group.on_reply, group.first_index
            )
            group.on_reply()  # the client of a subclass may not have called it
        except RequestFailedError as error:
            # An outage is not the item's fault, so it does not cost a try.
            is_outage = self.servers.is_down and not self.servers.gave_up.is_set()
            raise Lost(
                Ending.UNANSWERED, str(error), is_items_fault=not is_outage
            ) from error

    async def query(
        self, item: Any, on_reply: Callable[[], None] | None = None, first: int = 0
    ) -> list[dict[str, Any]]:
        """Return the completions of an item, as the hook `score` takes them.

        Args:
            item: (messages, entry, dataset).
            on_reply: Called when the servers have replied.
            first: The number of the first completion among all those of the item.

        Returns:
            One dict for each completion, shape (G,).

        Raises:
            RequestFailedError: No server gave usable completions.
        """
        messages, entry, dataset = item
        rendered = await self.prompts.prompts.render(messages)
        prompt = dataclasses.replace(rendered, item=item, first=first)
        prompt_tokens = list(prompt.tokens)
        length = len(prompt_tokens)
        fields = self.prompts.sampling(self.split)
        n = fields.pop("n")
        # An evaluation item may leave no room, and servers refuse 0 tokens.
        max_tokens = max(1, self.limit_tokens() - length)
        sampling = Sampling(max_tokens=max_tokens, split=self.split, **fields)
        completions = await self.servers.generate(prompt, n, sampling, on_reply)
        return [
            {
                "messages": [
                    *prompt.messages,
                    {"role": "assistant", "content": completion.text},
                ],
                "rg_item": entry,
                "dataset_obj": dataset,
                "finish_reason": completion.finish_reason,
                "tokens": prompt_tokens + completion.tokens,
                "masks": [PROMPT_MASK] * length + completion.tokens,
                "logprobs": completion.logprobs
                and [PROMPT_LOGPROB] * length + completion.logprobs,
                "thinking_open": prompt.thinking_open,
            }
            for completion in completions
        ]
