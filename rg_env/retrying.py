"""Calls that are tried again, and cost nothing where they succeed at once.

A `tenacity` controller is built of fifty objects that refer to each other, so that only
Python's garbage collector can take it away, and it stops everything for that. As nearly
all calls succeed at once, one is built only for those that do not. Those hold what the
failed call held, a reply of megabytes perhaps, so they are collected soon.
"""

from __future__ import annotations

import gc
import itertools
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenacity import AsyncRetrying

T = TypeVar("T")

COLLECT_EVERY = 50
"""Controllers between two searches for garbage among what is new."""

_controllers = itertools.count(1)


async def tried_again(
    retrying: Callable[[], AsyncRetrying], call: Callable[[], Awaitable[T]]
) -> T:
    """Return what a call returns, trying it as often as a controller says.

    Args:
        retrying: Returns the controller, which is told of the first try too.
        call: Makes one try.

    Raises:
        Exception: What the last try raised, as the controller hands it on.
    """
    try:
        return await call()
    except Exception as error:  # noqa: BLE001 - the controller says which count
        failure: Exception | None = error
    if next(_controllers) % COLLECT_EVERY == 0:
        gc.collect(0)
    async for attempt in retrying():
        with attempt:
            if failure is not None:
                try:
                    raise failure
                finally:
                    failure = None
            result = await call()
    return result
