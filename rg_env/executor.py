"""A thread for work that would block the event loop, and threads with an event loop.

There is one thread for such work: several would take turns at the interpreter's lock
(the GIL), and the event loop would wait for all of them. A function that works in it
for long calls `release_gil` again and again. Otherwise the interpreter passes the lock
on only after 5 ms, and not at all during a long call of a library.
Work of less than a millisecond is done in place: a change of threads costs more.
"""

from __future__ import annotations

import asyncio
import functools
import math
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

# Another thread needs this long to wake up and take the lock.
RELEASE_S = 0.0001

RELEASE_EVERY_S = 0.001

LOOP = "event_loop"  # the name of a thread with a loop


@functools.cache
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="executor")


async def in_thread(
    function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
) -> T:
    """Run a function in the thread for work; once begun, it cannot be cancelled."""
    call = functools.partial(function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_thread(), call)


_released_s = -math.inf


def release_gil() -> None:
    """Let other threads run, at most once in a millisecond.

    In a thread with a running event loop, this does nothing, so a function may call it
    in any thread.
    """
    global _released_s
    if asyncio._get_running_loop() is not None:
        return
    if time.perf_counter() - _released_s >= RELEASE_EVERY_S:
        time.sleep(RELEASE_S)
        _released_s = time.perf_counter()


@contextmanager
def event_loop_thread() -> Iterator[Callable[[Coroutine[Any, Any, T]], T]]:
    """Yield a function that waits for a coroutine in an event loop of another thread.

    Example:
        >>> with event_loop_thread() as wait_for:
        ...     wait_for(asyncio.sleep(0, "done"))
        'done'
    """
    begun: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def wait_for_end() -> None:
        end = asyncio.Event()
        begun.set_result((asyncio.get_running_loop(), end))
        await end.wait()

    # A daemon: the thread of an iterator that is never closed must not delay the exit.
    threading.Thread(
        target=asyncio.run, args=[wait_for_end()], name=LOOP, daemon=True
    ).start()
    loop, end = begun.result()
    try:
        yield lambda work: asyncio.run_coroutine_threadsafe(work, loop).result()
    finally:
        loop.call_soon_threadsafe(end.set)
