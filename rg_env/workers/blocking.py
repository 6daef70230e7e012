"""Coroutines that only wait for workers, run to their end without an event loop.

What is written for the event loop of a run then serves callers that have none, and
those whose thread runs one already.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, cast

from rg_env.workers.worker_pool import WorkerPool

T = TypeVar("T")


class _BlockingPool:
    """A pool whose `run` waits in place, so that who awaits it is never suspended."""

    def __init__(self, pool: WorkerPool) -> None:
        self.preload = pool.preload
        self._call = pool.call

    async def run(self, *args: Any, **limits: Any) -> Any:
        return self._call(*args, **limits)


def run_blocking(
    job: Callable[[WorkerPool], Coroutine[Any, Any, T]], pool: WorkerPool
) -> T:
    """Return the result of a coroutine that awaits nothing but `pool.run`.

    Args:
        job: Makes the coroutine of the pool that it is given.
        pool: Does the work; this thread waits for it.

    Raises:
        RuntimeError: The coroutine has waited for something else.
    """
    coroutine = job(cast(WorkerPool, _BlockingPool(pool)))
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise RuntimeError(f"{coroutine} waits for something else than a worker")
