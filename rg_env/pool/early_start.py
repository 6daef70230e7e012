"""The zygote of a run, begun while the process that needs it still imports.

Both import for one to two seconds, so the first items are ready as much earlier as
there is a second core.
"""

from __future__ import annotations

import atexit
from collections.abc import Sequence

from rg_env.pool.fork_server import ForkServer

_begun: dict[tuple[tuple[str, ...], int | None], ForkServer] = {}


def begin(preload: Sequence[str], memory_limit_bytes: int | None) -> None:
    """Start the zygote of the next pool, if that is given the same arguments.

    One that does not get a pool ends with this process.
    """
    if not _begun:
        atexit.register(_end_what_is_left)
    nursery = ForkServer(preload, memory_limit_bytes)
    nursery.start()
    _begun[tuple(preload), memory_limit_bytes] = nursery


def take(preload: Sequence[str], memory_limit_bytes: int | None) -> ForkServer:
    """Return the nursery that was begun with these arguments, or a new one.

    Another one that was begun has become useless and is ended.
    """
    begun = _begun.pop((tuple(preload), memory_limit_bytes), None)
    _end_what_is_left()
    return begun or ForkServer(preload, memory_limit_bytes)


def _end_what_is_left() -> None:
    while _begun:
        _begun.popitem()[1].close()
