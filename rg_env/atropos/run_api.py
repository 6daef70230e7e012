"""The Atropos API on a port, until a signal ends it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn

from rg_env.atropos.fast_replies import quick_application

logger = logging.getLogger(__name__)

END_WITHIN_S = 1
"""So long a request that has begun may take once the server is told to end."""


def application(*, is_quick: bool = True) -> Any:
    """Return the framework's application, or the one that takes less time.

    Args:
        is_quick: Whether the quick one is wanted. The framework's is returned all the
            same, and the log says so, where its routes are not those of the version
            that the quick one was made for.
    """
    from atroposlib.api import app as stock

    if not is_quick:
        return stock
    quick = quick_application(stock)
    if quick is None:
        logger.warning(
            "this version of atroposlib has another API than the one that can be made"
            " quicker; it is served as it is"
        )
        return stock
    return quick


class _Server(uvicorn.Server):
    """One that leaves signals to whoever runs it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(served: Any, listener: socket.socket) -> None:
    """Serve an application until this is cancelled, and end what has begun.

    Args:
        served: What `application` returned, or what stands in front of it.
        listener: A socket that listens.
    """
    config = uvicorn.Config(
        served,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=END_WITHIN_S,
    )
    server = _Server(config)
    serving = asyncio.ensure_future(server.serve([listener]))
    try:
        await asyncio.shield(serving)
    finally:
        server.should_exit = True
        await serving
