"""Why no reply came, in words: from the errors of aiohttp.

It wraps what happened in errors of its own. What says it is the system's error at the
bottom: a refused connection, a name that nobody knows, a TLS handshake that failed.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit

KEEP_ALIVE_S = 3.0
"""Less than the 5 s after which our servers close an idle connection: what goes out
while its connection is being closed is lost."""

FIRST_SERVER_FAULT = 500
BUSY = frozenset({408, 425, 429})
"""4xx of a server, or a proxy, that says nothing of the request."""

REFUSED = "nothing listens there"
SILENT = "it takes the connection and says nothing"
NO_SUCH_HOST = "there is no host of that name"
NO_TLS = "it does not speak TLS"
BAD_CERTIFICATE = "its certificate is not trusted"
CUT = "it closes the connection without an answer, as TLS does to plain HTTP"

SHORTEST_SECRET = 4
"""A shorter key is a placeholder, and would be found in every second word."""

DEEPEST = 12


def may_pass(status: int) -> bool:
    """Say whether the same request may be answered later, by its status."""
    return status in BUSY or status >= FIRST_SERVER_FAULT


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and what it was made of, outermost first."""
    for _ in range(DEEPEST):
        if error is None:
            return
        yield error
        inner = getattr(error, "exceptions", None)  # the group of all that was tried
        own = getattr(error, "os_error", None)
        error = (inner[0] if inner else own if own is not error else None) or (
            error.__cause__ or error.__context__
        )


def fault_of(error: BaseException) -> str | None:
    """Return the fault of a connection, one of the sentences above; None if it is none.

    Args:
        error: What a client raised.
    """
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return BAD_CERTIFICATE
        if isinstance(cause, ssl.SSLError):
            return NO_TLS
        if isinstance(cause, socket.gaierror):
            return NO_SUCH_HOST
        if getattr(cause, "errno", None) == errno.ECONNREFUSED:
            return REFUSED
        if isinstance(cause, asyncio.TimeoutError | TimeoutError):
            return SILENT
    names = {type(cause).__name__ for cause in _causes(error)}
    return CUT if names & {"ServerDisconnectedError", "BadStatusLine"} else None


def why_never(url: str, error: BaseException) -> str | None:
    """Return why no waiting brings a server to a URL; None where one may come."""
    fault = fault_of(error)
    host = getattr(error, "host", urlsplit(url).hostname)  # a proxy's perhaps
    what_to_do = {
        NO_SUCH_HOST: f"look at the spelling of {host!r}, or at the network",
        NO_TLS: f"write {url.replace('https://', 'http://', 1)}",
        BAD_CERTIFICATE: "name the file of the authority that signed it in the"
        " environment variable SSL_CERT_FILE",
    }
    if fault not in what_to_do:
        return None
    return f"{url} cannot be reached: {fault}; {what_to_do[fault]}"


def without_secrets(text: str, *secrets: str | None) -> str:
    """Return what a server said, without the key, which some repeat."""
    for secret in secrets:
        if secret is not None and len(secret) >= SHORTEST_SECRET:
            text = text.replace(secret, "(the key)")
    return text
