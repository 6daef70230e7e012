"""The function that repeats a call that fails."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def tried_again(
    call: Callable[[], Awaitable[T]],
    may_repeat: Callable[[Exception], bool],
    note: Callable[[Exception], object],
    *,
    tries: int | None = None,
    first_pause_s: float = 0.0,
    longest_pause_s: float = 0.0,
) -> T:
    """Return what a call returns, repeated after growing pauses as long as it fails.

    Args:
        call: Makes one try.
        may_repeat: Says whether another try can help after an exception.
        note: Told of each exception after which another try is made.
        tries: At most so many; None for no bound.
        first_pause_s: The first pause, give or take a half; each next one is twice it.
        longest_pause_s: The longest, give or take a half.

    Raises:
        Exception: What the last try raised.
    """
    for number in itertools.count(1):
        try:
            return await call()
        except Exception as error:
            if number == tries or not may_repeat(error):
                raise
            note(error)
        # With jitter, so that those that wait do not all try at the same moment.
        pause_s = min(first_pause_s * 2.0 ** min(number - 1, 60), longest_pause_s)
        await asyncio.sleep(pause_s * random.uniform(0.5, 1.5))
    raise AssertionError("there is no last number")
