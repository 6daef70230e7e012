"""How the simulated policy knows the answers: it draws the items that the env draws.

An item is a pure function of seed, split and index, so whoever draws the same stream
meets the same questions. `AnswerKey` keeps what it has drawn and goes on drawing when
it is asked for a question it has not met, up to a bound.

What it does not do: it cannot follow a curriculum, since levels move with the results.
Of one it has to be told the entries, before they are queried, as the demo does.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

from rg_env.demo.policy import KeyEntry
from rg_env.items.item_source import ItemSource, NoItemsError
from rg_env.task_rules.table import solution
from rg_env.tasks.item_stream import ItemSpec

logger = logging.getLogger(__name__)

MAX_DRAWS = 512
"""For one unknown question; more than the items that the env prepares ahead."""

MAX_AHEAD = 4096
"""Draws beyond the newest that was queried: other questions must not draw so far that
the first are forgotten."""

MAX_KNOWN = 50_000
"""Entries of the stream that are kept."""

MAX_REMEMBERED_MISSES = 10_000

UNSOLVED = "no solution known"
"""What the simulated policy says where an entry holds no answer; it is wrong."""


class AnswerKey:
    """A key that draws from a stream as far as the questions need.

    It may be queried for several questions at once; one of them draws at a time.

    Args:
        stream: Entries in the order in which the env samples them, finite or not.
        known: Entries that are known from the beginning and never forgotten.

    Attributes:
        drawn: Entries drawn so far.
        misses: Questions that were not found within the bounds.
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
        self._missed: dict[str, None] = {}
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
        """Return the entry of a question, drawing at most MAX_DRAWS entries for it.

        A question that was missed before is looked up but not drawn for again, so that
        a health check cannot pull the stream far ahead of the env.
        """
        known = self.lookup(question)
        if known is not None:
            return known
        async with self._lock:
            known = self.lookup(question)  # another question may have drawn it
            if known is None and question not in self._missed:
                known = await self._draw_until(question)
            if known is None:
                self._remember_miss(question)
            return known

    async def _draw_until(self, question: str) -> KeyEntry | None:
        last = min(self.drawn + MAX_DRAWS, self._newest_queried + MAX_AHEAD)
        while self._stream is not None and self.drawn < last:
            entry = await anext(self._stream, None)
            if entry is None:
                return None
            self.remember(entry)
            if entry.question == question:
                return self.lookup(question)
        return None

    def remember(self, entry: KeyEntry) -> None:
        """Know the next entry of the stream."""
        self.drawn += 1
        self._met[entry.question] = self.drawn, entry
        if len(self._met) > MAX_KNOWN:
            del self._met[next(iter(self._met))]

    def _remember_miss(self, question: str) -> None:
        self.misses += 1
        if self.misses == 1:
            logger.warning(
                "the simulated policy does not know a question and guesses: is the"
                " environment started with the same seed and tasks? (said once)"
            )
        self._missed[question] = None
        if len(self._missed) > MAX_REMEMBERED_MISSES:
            del self._missed[next(iter(self._missed))]


def build_entry(spec: ItemSpec, entry: Mapping[str, Any]) -> KeyEntry:
    """Return what the policy has to know of an entry of the library."""
    answer = solution(spec.task, entry) or UNSOLVED
    return KeyEntry(spec.task, entry["question"], answer, spec.level)


async def sampled_entries(items: ItemSource) -> AsyncIterator[KeyEntry]:
    """Yield what an environment of the same settings samples, without end."""
    with contextlib.suppress(NoItemsError):
        while True:
            made = await items.next_item()
            yield build_entry(made.handle, made.entry)
