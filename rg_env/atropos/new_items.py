"""The source of a training run: new items with prompts that leave room."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rg_env.atropos.item_prompts import ItemPrompts
from rg_env.stream.item import Item, Message
from rg_env.stream.prefetch import NoItemsError, PrefetchedItems

logger = logging.getLogger(__name__)

# Items in a row without room for an answer before the run ends.
LONG_PROMPTS_IN_A_ROW = 200


class NewItems:
    """The source of new items with prompts that leave room for an answer.

    Args:
        prompts: Makes them.
        limit_tokens: Returns the longest sequence that may be generated.
        events: Counts `prompts_too_long`.
    """

    def __init__(
        self,
        prompts: ItemPrompts,
        limit_tokens: Callable[[], int],
        events: Counter[str],
    ) -> None:
        self._prompts = prompts
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
            messages = self._prompts.messages(item.question, item.seed)
            if await self._prompts.has_room(messages, limit):
                logger.debug("next item %r", item)
                return messages, item.entry, item
            self._events["prompts_too_long"] += 1
        raise NoItemsError(
            f"{LONG_PROMPTS_IN_A_ROW} prompts in a row reach the limit of"
            f" {limit} tokens; raise env.max_token_length or the trainer's"
        )
