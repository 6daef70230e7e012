"""Why no reply came, in words: from the errors of aiohttp, httpx and openai.

Each wraps what happened in errors of its own. What says it is the system's error at the
bottom: a refused connection, a name that nobody knows, a TLS handshake that failed.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Iterator

REFUSED = "nothing listens there"
SILENT = "it takes the connection and says nothing"
NO_SUCH_HOST = "there is no host of that name"
NO_TLS = "it does not speak TLS"
BAD_CERTIFICATE = "its certificate is not trusted"
CUT = "it closes the connection without an answer"

NEVER_BY_WAITING = frozenset({NO_SUCH_HOST, NO_TLS, BAD_CERTIFICATE})
"""Faults that a server which is started later does not mend."""

PLAINER_IN_WORDS = frozenset({REFUSED, NO_SUCH_HOST, NO_TLS})
"""Faults of which the clients say less, or nothing but "Connection error."."""

SHORTEST_SECRET = 4
"""A shorter key is a placeholder, and would be found in every second word."""

DEEPEST = 12


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and what it was made of, outermost first."""
    for _ in range(DEEPEST):
        if error is None:
            return
        yield error
        inner = getattr(error, "exceptions", None)  # the group of all that was tried
        own = getattr(error, "os_error", None)
        error = (
            inner[0] if inner else own if own is not error else None
        ) or _next_cause(error)


def _next_cause(error: BaseException) -> BaseException | None:
    return error.__cause__ or error.__context__


def fault_of(error: BaseException) -> str | None:
    """Return the fault of a connection, one of the sentences above; None if it is none.

    Args:
        error: What a client raised.
    """
    for cause in causes(error):
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
    names = {type(cause).__name__ for cause in causes(error)}
    if names & {"ServerDisconnectedError", "RemoteProtocolError", "BadStatusLine"}:
        return CUT
    return None


def without_key(text: str, key: str | None) -> str:
    """Return what a server said, without the key, which some repeat."""
    is_secret = key is not None and len(key) >= SHORTEST_SECRET
    return text.replace(key, "(the key)") if key is not None and is_secret else text


def describe(error: BaseException, *keys: str | None) -> str:
    """Return an error's name and what it means.

    Args:
        error: What a client raised.
        keys: What requests are sent with; they are never repeated.
    """
    fault = fault_of(error)
    told = fault if fault in PLAINER_IN_WORDS else str(error)
    for key in keys:
        told = without_key(told, key)
    return f"{type(error).__name__}: {told}"[:500]
