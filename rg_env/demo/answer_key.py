"""How the simulated policy knows the answers: it draws the items that the env draws.

An item is a pure function of seed, split and index, so whoever draws the same stream
meets the same questions. A key cannot follow a curriculum, since levels move with the
results: of one it has to be told the entries before they are queried, as in the demo.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterable

from rg_env.demo.policy import KeyEntry
from rg_env.items.item import Item
from rg_env.items.run_stream import NoItemsError, RunStream

logger = logging.getLogger(__name__)

MAX_AHEAD = 1024
"""Draws beyond the newest that was queried, more than the items that the env prepares
ahead. Unknown questions must not draw so far that the first are forgotten."""

MAX_KNOWN = 50_000
"""Entries of the stream that are kept."""

UNSOLVED = "no solution known"
"""What the simulated policy says where an entry holds no answer; it is wrong."""


class AnswerKey:
    """A key that draws from a stream as far as the questions need.

    Args:
        stream: Entries in the order in which the env samples them, finite or not.
        known: Entries that are known from the beginning and never forgotten.

    Attributes:
        drawn: Entries drawn so far.
        misses: Queries whose question was not found within the bounds.
    """

    def __init__(
        self,
        stream: AsyncIterator[KeyEntry] | None = None,
        *,
        known: Iterable[KeyEntry] = (),
    ) -> None:
        self._stream = stream
        self._known = {entry.question: entry for entry in known}
        self._met: dict[str, tuple[int, KeyEntry]] = {}
        self._newest_queried = 0
        self._lock = asyncio.Lock()
        self.drawn = 0
        self.misses = 0

    def lookup(self, question: str) -> KeyEntry | None:
        """Return the entry of a question that is known or drawn already, or None."""
        met = self._met.get(question)
        if met is None:
            return self._known.get(question)
        self._newest_queried = max(self._newest_queried, met[0])
        return met[1]

    async def find(self, question: str) -> KeyEntry | None:
        """Return the entry of a question, drawing as far as MAX_AHEAD for it."""
        entry = self.lookup(question) or await self._drawn(question)
        if entry is None:
            self.misses += 1
            if self.misses == 1:
                logger.warning(
                    "the simulated policy does not know a question and guesses: is the"
                    " environment started with the same seed and tasks? (said once)"
                )
        return entry

    async def _drawn(self, question: str) -> KeyEntry | None:
        async with self._lock:  # one question draws at a time
            entry = self.lookup(question)
            last = self._newest_queried + MAX_AHEAD
            while entry is None and self._stream is not None and self.drawn < last:
                if (drawn := await anext(self._stream, None)) is None:
                    return None
                self.remember(drawn)
                if drawn.question == question:
                    entry = self.lookup(question)
            return entry

    def remember(self, entry: KeyEntry) -> None:
        """Know the next entry of the stream."""
        self.drawn += 1
        self._met[entry.question] = self.drawn, entry
        if len(self._met) > MAX_KNOWN:
            del self._met[next(iter(self._met))]


def build_entry(item: Item) -> KeyEntry:
    """Return what the policy has to know of an item."""
    return KeyEntry(item.task, item.question, item.gold or UNSOLVED, item.level)


async def sampled_entries(items: RunStream) -> AsyncIterator[KeyEntry]:
    """Yield what an environment of the same settings samples, without end."""
    with contextlib.suppress(NoItemsError):
        while True:
            yield build_entry(await items.next())
