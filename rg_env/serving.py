"""Serves an ASGI application at a socket until it is cancelled.

Idle connections never block new ones: the oldest ones are closed.
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
from rg_env.logs import should_log

logger = logging.getLogger(__name__)

# How long requests may still run when the server ends.
END_WITHIN_S = 1

# How long a connection may be idle.
IDLE_S = 20

# An idle connection is closed after this many newer ones, or fewer if files are scarce.
MAX_NEWER = 4096
BACKLOG = 2048

_HOST = re.compile(r"(?:([\d.]+|\[[\da-f:.]+\])|(.*?)\.?)(?::\d*)?")
"""An IP address or a name, and the port."""


class ClientCheck:
    """Refuses requests from web pages, and requests without the secret.

    A web page can make its name resolve to this machine. A browser then sends requests
    of the page to this server, but with that name as their host.
    Mends B27 of docs/host_defects.md: the framework lets every page read and write.

    Clients send the secret as `Authorization: Bearer SECRET`, or as the first part of
    the path, `http://HOST:PORT/SECRET/...`, because many clients only have an address
    and append their paths. `/health` needs no secret.

    Args:
        application: The application that gets the other requests.
        secret: The secret of clients, None if they need none.
        names: Host names of this server; IP addresses are always accepted.
    """

    def __init__(
        self, application: Any, secret: str | None = None, names: Iterable[str] = ()
    ) -> None:
        self._application = application
        self._secret = (secret or "").encode()
        here = {"localhost", socket.gethostname(), socket.getfqdn()}
        self._names = {name.lower() for name in here.union(names)}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Forward a request, or refuse it with the reason."""
        if scope["type"] != "lifespan":
            headers = dict(scope["headers"])
            refusal = self._web_page_fault(headers, scope.get("method", "GET"))
            if refusal is None and self._secret and scope["path"] != "/health":
                scope, refusal = self._without_secret(scope, headers)
            if refusal is not None:
                await refusal(scope, receive, send)
                return
        await self._application(scope, receive, send)

    def _web_page_fault(
        self, headers: Mapping[bytes, bytes], method: str
    ) -> JSONResponse | None:
        host = headers.get(b"host", b"localhost").decode("latin-1").lower()
        match = _HOST.fullmatch(host)
        if match is None or not (match[1] or match[2] in self._names):
            return _refusal(
                403,
                f"Host: {shown(host)} is not a name of this server; start it with"
                " --allowed_hosts NAME if it is one",
            )
        # Browsers always send this header, also with requests for images; it is "none"
        # for a typed address.
        site = headers.get(b"sec-fetch-site", b"none")
        if b"origin" in headers or b"referer" in headers or site != b"none":
            return _refusal(403, "web pages are not served")
        kind = headers.get(b"content-type", b"application/json").lower()
        if method == "POST" and b"json" not in kind:
            return _refusal(
                415, "the body must be sent as Content-Type: application/json"
            )
        return None

    def _without_secret(
        self, scope: Any, headers: Mapping[bytes, bytes]
    ) -> tuple[Any, JSONResponse | None]:
        """Return the scope without a secret in its path, and a refusal or None."""
        first, _, rest = scope["path"].removeprefix("/").partition("/")
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        # `compare_digest` takes constant time, so it leaks no part of the secret.
        if hmac.compare_digest(first.encode(), self._secret):
            return {**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode()}, None
        is_right = hmac.compare_digest(token.strip(), self._secret)
        if scheme.lower() == b"bearer" and is_right:
            return scope, None
        return scope, _refusal(
            401,
            "send the secret, as Authorization: Bearer SECRET or as /SECRET/...",
            {"WWW-Authenticate": "Bearer"},
        )


def _refusal(
    status: int, reason: str, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    return JSONResponse({"error": reason}, status, headers)


class _Server(uvicorn.Server):
    """A server that does not handle signals."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Connection(H11Protocol):
    """A connection that limits heads and trailers to 64 KiB.

    httptools has no such limits, so a client without the secret could fill the memory.
    """

    def send_400_response(self, msg: str) -> None:
        """Refuse invalid HTTP; a reply to its head would fail with a traceback."""
        if self.cycle is not None:
            self.cycle.disconnected = True
        super().send_400_response(msg)


def _connection_factory(max_newer: int) -> Callable[..., asyncio.Protocol]:
    """Return a factory of uvicorn's connections that closes old idle ones."""
    # uvicorn's `limit_concurrency` would refuse new connections instead.
    newest: deque[Any] = deque()
    closed = 0

    def build(**kwargs: Any) -> asyncio.Protocol:
        nonlocal closed
        while len(newest) >= max_newer and newest[0].transport is not None:
            oldest = newest.popleft()
            is_idle = oldest.cycle is None or oldest.cycle.response_complete
            if is_idle and oldest in oldest.connections:  # otherwise already closed
                oldest.transport.close()
                closed += 1
                if should_log(closed):
                    logger.warning(
                        "closed %d idle connections: over %d newer ones came",
                        closed,
                        max_newer,
                    )
        newest.append(_Connection(**kwargs))
        return newest[-1]  # type: ignore[no-any-return]

    return build


async def serve(application: Any, listener: socket.socket, **options: Any) -> None:
    """Serve an ASGI application at a socket until cancelled; finish running requests.

    Further options are those of `uvicorn.Config`.
    """
    _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    settings: dict[str, Any] = {
        "log_level": "warning",
        "ws": "none",
        "access_log": False,
        "timeout_keep_alive": IDLE_S,
        "http": _connection_factory(min(MAX_NEWER, files // 2)),
        # Up to this many connections are accepted before old ones are closed. Without
        # free files, asyncio would log a traceback for each.
        "backlog": min(BACKLOG, files // 16),
        "timeout_graceful_shutdown": END_WITHIN_S,
    }
    server = _Server(uvicorn.Config(application, **settings | options))
    if listener.family in (socket.AF_INET, socket.AF_INET6):
        # Connections inherit this option. asyncio does not set it for a socket without
        # a protocol, and the body of a reply would then be 40 ms late.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    serving = asyncio.ensure_future(server.serve([listener]))
    try:
        # A cancelled uvicorn would not wait for running requests.
        await asyncio.shield(serving)
    finally:
        server.should_exit = True
        await serving
