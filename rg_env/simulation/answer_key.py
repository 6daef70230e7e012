"""How the simulated policy knows the answers: it draws the items that the env draws.

An item is a pure function of seed, split and index, so whoever draws the same stream
meets the same questions. `AnswerKey` keeps what it has drawn and goes on drawing when
it is asked for a question it has not met, up to a bound. It knows nothing of how
entries are made: a stream is any iterator of `KeyEntry`, and a slow one belongs behind
a process of its own, because the library's generators hold the interpreter lock for
seconds.

What it does not do: it cannot follow a curriculum by itself, since levels move with the
results. A stream that is to serve one yields an entry for every level of each draw.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

from rg_env.simulation.policy import KeyEntry

logger = logging.getLogger(__name__)

MAX_REMEMBERED_MISSES = 10_000


class AnswerKey:
    """A key that draws from streams as far as the questions need.

    It may be asked from several threads; one of them draws at a time.

    Args:
        streams: Iterators of entries, finite or not. Draws go round them in turn.
        max_draws: Draws for one unknown question, over all streams; positive. Has to
            exceed the number of items the env prepares ahead, times the streams.
        max_known: Entries kept of each stream, the oldest forgotten first; positive.

    Attributes:
        drawn: Entries drawn so far.
        misses: Questions asked for that were not found within the bound.

    Raises:
        ValueError: A bound is not positive.
    """

    def __init__(
        self,
        streams: Iterable[Iterator[KeyEntry]],
        *,
        max_draws: int = 512,
        max_known: int = 50_000,
    ) -> None:
        if max_draws < 1 or max_known < 1:
            raise ValueError("max_draws and max_known must be positive")
        self._streams = list(streams)
        self._tables: list[dict[str, KeyEntry]] = [{} for _ in self._streams]
        self._live = set(range(len(self._streams)))
        self._turn = 0
        self._max_draws = max_draws
        self._max_known = max_known
        self._missed: dict[str, None] = {}
        self._lock = threading.Lock()
        self.drawn = 0
        self.misses = 0

    def lookup(self, question: str) -> KeyEntry | None:
        """Return the entry of a question already drawn, or None."""
        for table in self._tables:
            entry = table.get(question)
            if entry is not None:
                return entry
        return None

    def find(self, question: str) -> KeyEntry | None:
        """Return the entry of a question, drawing at most `max_draws` entries for it.

        A question that was missed before is looked up but not drawn for again, so that
        a health check cannot pull the streams far ahead of the env.
        """
        with self._lock:
            known = self.lookup(question)
            if known is not None:
                return known
            if question not in self._missed:
                for _ in range(self._max_draws):
                    entry = self._draw()
                    if entry is None:
                        break
                    if entry.question == question:
                        return entry
            self._remember_miss(question)
            return None

    def _draw(self) -> KeyEntry | None:
        """Take one entry from the next live stream; None when all have ended."""
        while self._live:
            place = self._turn % len(self._streams)
            self._turn += 1
            if place not in self._live:
                continue
            entry = next(self._streams[place], None)
            if entry is None:
                self._live.discard(place)
                continue
            self._remember(self._tables[place], entry)
            return entry
        return None

    def _remember(self, table: dict[str, KeyEntry], entry: KeyEntry) -> None:
        self.drawn += 1
        table[entry.question] = entry
        if len(table) > self._max_known:
            del table[next(iter(table))]

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


class AsyncKey:
    """A key asked from an event loop: what is known at once, the rest off the loop.

    Drawing runs in one thread, because the library's generators share global state.

    Args:
        key: The key to ask.
    """

    def __init__(self, key: AnswerKey) -> None:
        self._key = key
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="answer-key")

    async def find(self, question: str) -> KeyEntry | None:
        """Return the entry of a question, or None; the loop is free meanwhile."""
        known = self._key.lookup(question)
        if known is not None:
            return known
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._key.find, question)

    def close(self) -> None:
        """Give up what has not begun; can be called twice."""
        self._thread.shutdown(wait=False, cancel_futures=True)
