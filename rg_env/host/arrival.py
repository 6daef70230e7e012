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

_told: ContextVar[Callable[[], None] | None] = ContextVar("_told", default=None)


@contextlib.contextmanager
def tell_of_replies(callback: Callable[[], None]) -> Iterator[None]:
    """Have `callback` called when a reply has come to what is asked for inside.

    A reply that turns out to be of no use, and is asked for again, is told of as well.
    """
    token = _told.set(callback)
    try:
        yield
    finally:
        _told.reset(token)


async def reply_has_come() -> None:
    """Tell whoever asked, and let the next request go out."""
    callback = _told.get()
    if callback is not None:
        callback()
        await asyncio.sleep(HEAD_START_S)
