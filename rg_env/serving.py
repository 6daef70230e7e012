"""Serves an ASGI application at a socket until it is cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import hmac
import socket
import time
from collections.abc import Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

END_WITHIN_S = 1
"""So long a request that has begun may take once the server is told to end."""

CHECK_EVERY_TICKS = 20
"""Of uvicorn's main loop, which has ten in a second."""

FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
    b"Content-Type: application/json\r\nContent-Length: 32\r\n\r\n"
    b'{"error":"too many connections"}'
)
NO_SECRET = (
    b'{"error":"send the secret, as Authorization: Bearer SECRET or as /SECRET/..."}'
)


class BehindSecret:
    """Makes an application available only to clients that send a secret.

    They send it as `Authorization: Bearer SECRET`, or as the first part of the path,
    `http://HOST:PORT/SECRET/...`: many clients take only an address, to which they
    append their paths. `/health` needs none.
    """

    def __init__(self, inner: Any, secret: str) -> None:
        self._inner, self._secret = inner, secret.encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Forward a request, or answer with status 401; a WebSocket gets 403."""
        if scope["type"] != "lifespan" and scope["path"] != "/health":
            given, _, rest = scope["path"].removeprefix("/").partition("/")
            header = dict(scope["headers"]).get(b"authorization", b"")
            scheme, _, token = header.partition(b" ")
            if self._is_secret(given.encode()):
                path = f"/{rest}"
                scope = {**scope, "path": path, "raw_path": path.encode()}
            elif scheme.lower() != b"bearer" or not self._is_secret(token.strip()):
                await self._refuse(scope, receive, send)
                return
        await self._inner(scope, receive, send)

    def _is_secret(self, given: bytes) -> bool:
        # Takes the same time however much of the secret is right.
        return hmac.compare_digest(given, self._secret)

    async def _refuse(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            # The connection has to be asked for before it can be refused.
            await receive()
            await send({"type": "websocket.close"})
            return
        head = [
            (b"content-type", b"application/json"),
            (b"www-authenticate", b"Bearer"),
        ]
        head.append((b"content-length", b"%d" % len(NO_SECRET)))
        await send({"type": "http.response.start", "status": 401, "headers": head})
        await send({"type": "http.response.body", "body": NO_SECRET})


@dataclasses.dataclass(frozen=True)
class ConnectionLimits:
    """What clients may hold, of which uvicorn bounds nothing.

    Attributes:
        most: Connections; one beyond them is answered with status 503 and closed.
        idle_s: Time without a request, or for the head of one.
        request_s: Time from the head of a request until its reply is sent.
    """

    most: int = 1000
    idle_s: float = 20.0
    request_s: float = 300.0


class _Connection(H11Protocol):
    """A connection, which is closed at once where there is no place for it.

    h11 bounds the head of a request, which httptools does not.
    """

    def __init__(self, most: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._most = most

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if len(self.connections) < self._most:
            super().connection_made(transport)
            return
        self.transport = transport
        transport.write(FULL)
        transport.close()


class _Server(uvicorn.Server):
    """One that leaves signals to whoever runs it, and keeps connections in bounds."""

    def __init__(self, config: uvicorn.Config, limits: ConnectionLimits | None) -> None:
        super().__init__(config)
        self._limits = limits
        self._seen: dict[Any, tuple[Any, float]] = {}
        if limits is not None:
            making = functools.partial(_Connection, limits.most)
            config.http = making  # type: ignore[assignment]  # called for each one
            config.timeout_keep_alive = limits.idle_s  # type: ignore[assignment]

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def on_tick(self, counter: int) -> bool:
        """Close what hangs, every two seconds; return whether to end."""
        if self._limits is not None and counter % CHECK_EVERY_TICKS == 0:
            self._close_hanging(self._limits)
        return await super().on_tick(counter)

    def _close_hanging(self, limits: ConnectionLimits) -> None:
        now, seen = time.monotonic(), {}
        for connection in tuple(self.server_state.connections):
            if not isinstance(connection, H11Protocol):
                continue  # a WebSocket, which has pings
            request = connection.cycle
            before, since = self._seen.get(connection, (None, now))
            seen[connection] = (request, since if before is request else now)
            is_idle = getattr(request, "response_complete", True)  # None at first
            allowed_s = limits.idle_s if is_idle else limits.request_s
            if now - seen[connection][1] > allowed_s:
                connection.transport.abort()
        self._seen = seen


async def serve(
    served: Any,
    listener: socket.socket,
    *,
    end_within_s: int = END_WITHIN_S,
    limits: ConnectionLimits | None = None,
    **options: Any,
) -> None:
    """Serve an application at a socket until cancelled, and end what has begun.

    Args:
        served: The ASGI application.
        listener: A socket that listens.
        end_within_s: Time for the requests that have begun.
        limits: None if all clients are trusted.
        options: Further ones of `uvicorn.Config`.
    """
    settings: dict[str, Any] = {"log_level": "warning", "ws": "none", **options}
    config = uvicorn.Config(
        served,
        access_log=False,
        timeout_graceful_shutdown=end_within_s,
        **settings,
    )
    server = _Server(config, limits)
    if listener.family in (socket.AF_INET, socket.AF_INET6):
        # Its connections inherit this. asyncio does not set it for a socket that names
        # no protocol, and the body of a reply then waits 40 ms behind its head.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    serving = asyncio.ensure_future(server.serve([listener]))
    try:
        # A cancelled uvicorn would not wait for the requests that have begun.
        await asyncio.shield(serving)
    finally:
        server.should_exit = True
        await serving
