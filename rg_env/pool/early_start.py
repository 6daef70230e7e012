"""The fork server of a run, started while the process that needs it still imports.

Both import for one to two seconds, so the first items are ready as much earlier as
there is a second core.
"""

from __future__ import annotations

import atexit
from collections.abc import Sequence

from rg_env.pool.fork_server import ForkServer

_begun: ForkServer | None = None


def begin(preload: Sequence[str], memory_limit_bytes: int | None) -> None:
    """Start the fork server of the next pool, if that is given the same arguments.

    One that does not get a pool ends with this process.
    """
    global _begun
    _begun = ForkServer(preload, memory_limit_bytes)
    atexit.register(_begun.close)
    _begun.start()


def take(preload: Sequence[str], memory_limit_bytes: int | None) -> ForkServer:
    """Return the fork server that was begun with these arguments, or a new one.

    Another one that was begun has become useless and is ended.
    """
    global _begun
    begun, _begun = _begun, None
    wanted = ForkServer(preload, memory_limit_bytes)
    if begun is None:
        return wanted
    if begun.arguments == wanted.arguments:
        return begun
    begun.close()
    return wanted
