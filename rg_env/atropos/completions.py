"""The model of a run: inference servers that complete items."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from rg_env.atropos.item_prompts import ItemPrompts
from rg_env.inference.completions import Sampling
from rg_env.inference.connection import RequestFailedError
from rg_env.inference.servers import Servers
from rg_env.run.group import Ending, Group
from rg_env.run.loop import Lost

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
