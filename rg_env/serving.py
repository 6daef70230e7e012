"""Serves an ASGI application at a socket until it is cancelled.

Connections that wait for a request never keep others out: the oldest ones are closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import re
import resource
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import uvicorn
from starlette.responses import JSONResponse
from uvicorn.protocols.http.h11_impl import H11Protocol

from rg_env.errors import shown
from rg_env.logs import is_sampled

logger = logging.getLogger(__name__)

# So long a request that has begun may take once the server is told to end.
END_WITHIN_S = 1

# A connection without a request is closed after it.
IDLE_S = 20

# Newer connections after which one that waits for a request is closed, if files allow.
MOST_NEWER = 4096
BACKLOG = 2048

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
        """Forward a request, or refuse it with a sentence."""
        if scope["type"] != "lifespan":
            headers = dict(scope["headers"])
            refusal = self._web_page_fault(headers, scope.get("method", "GET"))
            if refusal is None and self._secret and scope["path"] != "/health":
                scope, refusal = self._without_secret(scope, headers, self._secret)
            if refusal is not None:
                await refusal(scope, receive, send)
                return
        await self._inner(scope, receive, send)

    def _web_page_fault(
        self, headers: Mapping[bytes, bytes], method: str
    ) -> JSONResponse | None:
        host = headers.get(b"host", b"localhost").decode("latin-1").lower()
        parts = _HOST.fullmatch(host)
        if parts is None or not (parts[1] or parts[2] in self._names):
            return _refusal(
                403,
                f"Host: {shown(host)} is no name of this server; start it with"
                " --allowed_hosts NAME if it is one",
            )
        # Browsers send the last one even where a page may not name itself, as for an
        # image; it is "none" for an address that somebody has typed.
        site = headers.get(b"sec-fetch-site", b"none")
        if b"origin" in headers or b"referer" in headers or site != b"none":
            return _refusal(403, "web pages are not served")
        kind = headers.get(b"content-type", b"application/json").lower()
        if method == "POST" and b"json" not in kind:
            return _refusal(
                415, "the body must be sent as Content-Type: application/json"
            )
        return None

    @staticmethod
    def _without_secret(
        scope: Any, headers: Mapping[bytes, bytes], secret: bytes
    ) -> tuple[Any, JSONResponse | None]:
        """Return the scope with no secret in its path, or a refusal."""
        first, _, rest = scope["path"].removeprefix("/").partition("/")
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        # Comparing takes the same time however much of the secret is right.
        if hmac.compare_digest(first.encode(), secret):
            return {**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode()}, None
        if scheme.lower() == b"bearer" and hmac.compare_digest(token.strip(), secret):
            return scope, None
        text = "send the secret, as Authorization: Bearer SECRET or as /SECRET/..."
        return scope, _refusal(401, text, **{"WWW-Authenticate": "Bearer"})


def _refusal(status: int, text: str, **headers: str) -> JSONResponse:
    return JSONResponse({"error": text}, status, headers)


class _Server(uvicorn.Server):
    """One that leaves signals to whoever runs it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Connection(H11Protocol):
    """One whose heads and trailers have at most 64 KiB, and wait for their replies.

    httptools has no such limits: a client without the secret would fill the memory.
    """

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP; a reply to its head would fail, with a traceback."""
        if self.cycle is not None:
            self.cycle.disconnected = True
        super().send_400_response(msg)


def _connections(most_newer: int) -> Callable[..., asyncio.Protocol]:
    """Return a factory of uvicorn's connections, which closes old idle ones."""
    # uvicorn's `limit_concurrency` would refuse the newest, whoever holds the others.
    newest: deque[Any] = deque()
    closed = 0

    def connection(**named: Any) -> asyncio.Protocol:
        nonlocal closed
        while len(newest) >= most_newer and newest[0].transport is not None:
            oldest = newest.popleft()
            is_idle = oldest.cycle is None or oldest.cycle.response_complete
            if is_idle and oldest in oldest.connections:  # else it is closed already
                oldest.transport.close()
                closed += 1
                if is_sampled(closed):
                    text = "closed %d idle connections: over %d newer ones came"
                    logger.warning(text, closed, most_newer)
        newest.append(_Connection(**named))
        return newest[-1]  # type: ignore[no-any-return]

    return connection


async def serve(served: Any, listener: socket.socket, **options: Any) -> None:
    """Serve an ASGI application at a socket until cancelled, and end what has begun.

    Further options are those of `uvicorn.Config`.
    """
    _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    settings: dict[str, Any] = {
        "log_level": "warning",
        "ws": "none",
        "access_log": False,
        "timeout_keep_alive": IDLE_S,
        "http": _connections(min(MOST_NEWER, files // 2)),
        # So many are accepted before the next ones are closed. Out of files, asyncio
        # would write a traceback for each.
        "backlog": min(BACKLOG, files // 16),
        "timeout_graceful_shutdown": END_WITHIN_S,
    }
    server = _Server(uvicorn.Config(served, **settings | options))
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
