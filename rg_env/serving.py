"""Serves an ASGI application at a socket until it is cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import hmac
import logging
import re
import resource
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import uvicorn
from starlette.responses import JSONResponse
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from rg_env.errors import shown
from rg_env.logs import is_worth_a_line

logger = logging.getLogger(__name__)

Headers = Mapping[bytes, bytes]

END_WITHIN_S = 1
"""So long a request that has begun may take once the server is told to end."""

CHECK_EVERY_TICKS = 20
"""Connections are checked every so many ticks of uvicorn's loop, ten a second."""

HEAD_BYTES = 2**16
"""The longest head of a request; uvicorn's faster parser has no limit."""

_HOST = re.compile(r"(?:([\d.]+|\[[\da-f:.]+\])|(.*?)\.?)(?::\d*)?")
"""An IP address or a name, and the port."""


class ClientCheck:
    """Refuses requests that a web page has made a browser send, or without a secret.

    A page can have its own name resolve to this machine, and a browser then takes this
    server for the page's own; but its requests have that name as their host.
    Mends B27 of docs/host_defects.md: the framework lets every page read and write.

    Clients send the secret as `Authorization: Bearer SECRET`, or as the first part of
    the path, `http://HOST:PORT/SECRET/...`: many clients take only an address, to which
    they append their paths. `/health` needs none.

    Args:
        inner: The application.
        secret: None if clients need none.
        names: Host names of this server; an IP address is always one.
    """

    def __init__(
        self, inner: Any, secret: str | None = None, names: Iterable[str] = ()
    ) -> None:
        self._inner = inner
        self._secret = None if secret is None else secret.encode()
        own = ("localhost", socket.gethostname(), socket.getfqdn())
        self._names = {name.lower() for name in (*own, *names)}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Forward a request, or refuse it; a WebSocket always gets status 403."""
        refused = None
        if scope["type"] != "lifespan":
            headers = dict(scope["headers"])
            refused = self._fault(headers, scope.get("method", "GET"))
            if refused is None and self._secret and scope["path"] != "/health":
                scope, refused = self._without_secret(scope, headers, self._secret)
        if refused is None:
            await self._inner(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()  # the connection has to be asked for before it is refused
            await send({"type": "websocket.close"})
        else:
            status, said = refused
            how = {"WWW-Authenticate": "Bearer"} if status == 401 else None
            await JSONResponse({"error": said}, status, how)(scope, receive, send)

    def _fault(self, headers: Headers, method: str) -> tuple[int, str] | None:
        """Return a status and a sentence for what no client of ours sends."""
        host = headers.get(b"host", b"localhost").decode("latin-1").lower()
        found = _HOST.fullmatch(host)
        if found is None or not (found[1] or found[2] in self._names):
            said = f"Host: {shown(host)} is no name of this server; start it with"
            return 403, f"{said} --allowed_hosts NAME if it is one"
        # Browsers send the last one even where a page may not name itself, as for an
        # image; it is "none" for an address that somebody has typed.
        site = headers.get(b"sec-fetch-site", b"none")
        if b"origin" in headers or b"referer" in headers or site != b"none":
            return 403, "web pages are not served"
        kind = headers.get(b"content-type", b"application/json").lower()
        if method == "POST" and b"json" not in kind:
            return 415, "the body must be sent as Content-Type: application/json"
        return None

    @staticmethod
    def _without_secret(
        scope: Any, headers: Headers, secret: bytes
    ) -> tuple[Any, tuple[int, str] | None]:
        """Return the scope with no secret in its path, and what is wrong."""
        given, _, rest = scope["path"].removeprefix("/").partition("/")
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        # Comparing takes the same time however much of the secret is right.
        if hmac.compare_digest(given.encode(), secret):
            return {**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode()}, None
        if scheme.lower() == b"bearer" and hmac.compare_digest(token.strip(), secret):
            return scope, None
        said = "send the secret, as Authorization: Bearer SECRET or as /SECRET/..."
        return scope, (401, said)


@dataclasses.dataclass(frozen=True)
class ConnectionLimits:
    """What clients may hold, of which uvicorn bounds only the time after a reply.

    Attributes:
        most: Connections, at most half of the files that this process may open. One
            more closes the one that has waited longest for a request.
        idle_s: Time without a request, or for the head of one.
        request_s: Time from the head of a request until its reply is sent.
    """

    most: int = 2048
    idle_s: float = 20.0
    request_s: float = 300.0


class _Connection(AutoHTTPProtocol):  # type: ignore[valid-type, misc]  # one of two
    """A connection that knows since when it waits, for a request or for a reply."""

    def __init__(self, server: _Server, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._server = server

    @property
    def is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.since, self._head_bytes = time.monotonic(), 0
        self._server.make_place()

    def data_received(self, data: bytes) -> None:
        request = self.cycle
        is_body = request is not None and request.more_body
        super().data_received(data)
        if self.cycle is not request:
            self.since, self._head_bytes = time.monotonic(), 0
        elif not is_body:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES:
                self.transport.abort()

    def on_response_complete(self) -> None:
        self.since = time.monotonic()
        super().on_response_complete()


class _Server(uvicorn.Server):
    """One that leaves signals to whoever runs it, and keeps connections in bounds."""

    def __init__(self, config: uvicorn.Config, limits: ConnectionLimits) -> None:
        super().__init__(config)
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._limits, self._most = limits, min(limits.most, files // 2)
        self._beyond = 0
        making = functools.partial(_Connection, self)
        config.http = making  # type: ignore[assignment]  # called for each one
        config.timeout_keep_alive = limits.idle_s  # type: ignore[assignment]

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def on_tick(self, counter: int) -> bool:
        """Close what hangs, every two seconds; return whether to end."""
        if counter % CHECK_EVERY_TICKS == 0:
            limits, now = self._limits, time.monotonic()
            for each in self._connections():
                allowed_s = limits.idle_s if each.is_idle else limits.request_s
                if now - each.since > allowed_s:
                    each.transport.abort()
        return await super().on_tick(counter)

    def _connections(self) -> list[_Connection]:
        """Return the connections without WebSockets, which have pings."""
        held = self.server_state.connections
        return [each for each in held if isinstance(each, _Connection)]

    def make_place(self) -> None:
        """Close a connection if there is one too many."""
        if len(self.server_state.connections) <= self._most:
            return
        # A new one is idle, so there always is one.
        idle = [each for each in self._connections() if each.is_idle]
        longest = min(idle, key=lambda each: each.since)
        self.server_state.connections.discard(longest)
        longest.transport.abort()
        self._beyond += 1
        if is_worth_a_line(self._beyond):
            said = "more than %d connections: %d that waited longest were closed so far"
            logger.warning(said, self._most, self._beyond)


async def serve(
    served: Any,
    listener: socket.socket,
    *,
    end_within_s: int = END_WITHIN_S,
    limits: ConnectionLimits = ConnectionLimits(),
    **options: Any,
) -> None:
    """Serve an application at a socket until cancelled, and end what has begun.

    Args:
        served: The ASGI application.
        listener: A socket that listens.
        end_within_s: Time for the requests that have begun.
        limits: Of connections.
        options: Further ones of `uvicorn.Config`.
    """
    settings: dict[str, Any] = {"log_level": "warning", "ws": "none", **options}
    settings |= {"access_log": False, "timeout_graceful_shutdown": end_within_s}
    config = uvicorn.Config(served, **settings)
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
