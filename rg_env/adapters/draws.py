"""The items of a stream, made ahead by all workers of this machine or of a cluster."""

from __future__ import annotations

import asyncio
import functools
import itertools
import pickle
from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from rg_env.items.item import Item
from rg_env.items.tasks import Tasks
from rg_env.workers.worker_pool import default_pool_size

if TYPE_CHECKING:
    from rg_env.adapters.ray import Cluster

DRAWS_A_CALL = 16
CALLS_A_CORE = 2
"""Calls under way for each core of a cluster, so that none is idle."""


def draws(
    tasks: Tasks, cluster: Cluster | None = None
) -> Generator[Item | None, None, None]:
    """Yield the items of a stream from its position on, in their order.

    The position does not change. Raises what `Tasks.at` does.

    Args:
        tasks: A stream that does not follow results.
        cluster: Whose nodes make the items; by default this machine does.

    Yields:
        The item of a draw, None if none could be made.
    """
    saved, size, at_once = b"", 1, default_pool_size()
    if cluster is not None:
        saved, size = pickle.dumps(tasks), DRAWS_A_CALL
        at_once = CALLS_A_CORE * cluster.cpus

    def some_items(positions: Sequence[int]) -> list[Item | None]:
        if cluster is None:
            return [tasks.at(position) for position in positions]
        return asyncio.run(cluster.call(_made_far, saved, positions))

    waiting: deque[Future[list[Item | None]]] = deque()
    # They only wait: items are made in worker processes, here or on the nodes.
    threads = ThreadPoolExecutor(at_once, thread_name_prefix="draws")
    try:
        for first in itertools.count(tasks.position, size):
            waiting.append(threads.submit(some_items, range(first, first + size)))
            if len(waiting) == at_once:
                yield from waiting.popleft().result()
    finally:
        threads.shutdown(cancel_futures=True)


def _made_far(saved: bytes, positions: Sequence[int]) -> list[Item | None]:
    return [_loaded(saved).at(position) for position in positions]


@functools.lru_cache(1)  # its first item costs much more than the others
def _loaded(saved: bytes) -> Tasks:
    tasks: Tasks = pickle.loads(saved)  # noqa: S301 - from `draws`, over Ray, which pickles
    return tasks
