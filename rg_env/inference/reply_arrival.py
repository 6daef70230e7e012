"""Word that a reply has come, before any of it is read.

Many groups end at the same time where completions are equally long. If each reply were
parsed, decoded and tokenized first, the inference server would wait for the last of
them before it got the first new request.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

HEAD_START_S = 0.003
"""What a reply waits before it is read, so that the next request goes out first."""


class _Asker:
    """Who wants to be told, until the replies are all there.

    A context lives for as long as the timers that were set in it, the cancelled ones
    too, of which the event loop keeps a hundred. What it holds must be small: a
    callback that leads to a group keeps the last 30 groups in memory, and the event
    loop stops for 50 ms when they go (16 completions of 8,000 tokens each).
    """

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback


_asker: ContextVar[_Asker | None] = ContextVar("_asker", default=None)


@contextlib.contextmanager
def tell_of_replies(callback: Callable[[], None]) -> Iterator[None]:
    """Have `callback` called when a reply has come to what is asked for inside.

    A reply that turns out to be of no use, and is asked for again, is told of as well.
    """
    asker = _Asker(callback)
    token = _asker.set(asker)
    try:
        yield
    finally:
        _asker.reset(token)
        asker.callback = None


async def reply_has_come() -> None:
    """Tell whoever asked, and let the next request go out."""
    asker = _asker.get()
    if asker is not None and asker.callback is not None:
        asker.callback()
        await asyncio.sleep(HEAD_START_S)
