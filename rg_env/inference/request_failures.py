"""What a failed request comes to, in words, and the setting that is the reason.

Pure. Where a server refuses, its own words are repeated; where no reply came, the words
are those of the system's error at the bottom, which aiohttp wraps in its own.
"""

from __future__ import annotations

import asyncio
import errno
import re
import socket
import ssl
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import orjson
from aiohttp import ClientResponseError
from aiohttp.http_exceptions import HttpProcessingError

FIRST_SERVER_FAULT, NOT_FOUND = 500, 404
BUSY = frozenset({408, 425, 429})
"""Of a server, or a proxy, that says nothing of the request."""

ABOUT_THE_REQUEST = frozenset({400, 413, 422})
OF_THE_KEY = frozenset({401, 402, 403})
OF_THE_PATH = frozenset({NOT_FOUND, 405, 410, 501})

LONGEST_READ = 2**16
"""Of a reply that is searched for a sentence."""

LONGEST_SAID, LONGEST_TOLD = 200, 500
DEEPEST = 12
MOST_MODELS = 8
"""Named in a sentence."""

SHORTEST_SECRET = 4
"""A shorter key is a placeholder, and would be found in every second word."""

MAX_COMPLETION_TOKENS = "max_completion_tokens"
"""What some models want the limit called."""


def may_pass(status: int) -> bool:
    """Say whether the same request may be answered later, by its status."""
    return status in BUSY or status >= FIRST_SERVER_FAULT


def _without_secrets(text: str, secrets: Sequence[str]) -> str:
    """Return what a server said, without the key, which some repeat."""
    for secret in secrets:
        if len(secret) >= SHORTEST_SECRET:
            text = text.replace(secret, "(the key)")
    return text


# -- no reply came ---------------------------------------------------------------------

REFUSED = "nothing listens there"
SILENT = "it takes the connection and says nothing"
NO_SUCH_HOST = "there is no host of that name"
NO_TLS = "it does not speak TLS"
BAD_CERTIFICATE = "its certificate is not trusted"


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
    """Return the fault of a connection, one of the sentences above, or None."""
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
    return None


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


# -- a reply that refuses --------------------------------------------------------------

_MODEL = re.compile(
    r"model.{0,80}(not found|not exist|not available|unknown|not loaded|no such)"
    r"|(no such|unknown|invalid|not a valid|not found:?) model",
    re.IGNORECASE | re.DOTALL,
)
_CONTEXT = re.compile(
    r"context.?(length|window|size)|max_model_len|maximum model length"
    r"|too many tokens|token count exceeds|longer than the model"
    r"|(prompt|input|request)( \w+)? (is|was) too long|reduce the length"
    r"|max_(new_|completion_)?tokens",
    re.IGNORECASE,
)
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)

KEY, MODEL, CONTEXT = "openai.api_key", "openai.model_name", "env.max_token_length"
HINTS = {
    KEY: "set a key that it takes",
    MODEL: "set one that it has",
    CONTEXT: "set a lower one, and env.eval_max_token_length where that is set: prompt"
    " and completion together are too long",
}
"""Settings that a refusal is read for, and what to do; another one is in its words."""


class Refusal(NamedTuple):
    """A reply that is no completion; it may name a parameter of the request."""

    status: int
    said: str
    parameter: str = ""

    @property
    def words(self) -> str:
        """Status and sentence."""
        return f"{self.status} {self.said}".rstrip()

    @property
    def setting(self) -> str | None:
        """The setting that is the reason; None where none is named."""
        if self.status in OF_THE_KEY:
            return KEY
        if self.status not in ABOUT_THE_REQUEST | {NOT_FOUND}:
            return None
        if self.parameter == "model" or _MODEL.search(self.said):
            return MODEL
        is_context = _CONTEXT.search(f"{self.parameter} {self.said}")
        return CONTEXT if is_context and self.status != NOT_FOUND else None

    @property
    def is_absence(self) -> bool:
        """Whether the server does not have the path that was queried."""
        return self.status in OF_THE_PATH and self.setting is None

    @property
    def wants_another_limit(self) -> bool:
        """Whether the model takes `max_completion_tokens` in place of `max_tokens`."""
        return self.parameter == "max_tokens" and MAX_COMPLETION_TOKENS in self.said


def _parsed(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _message(body: Any) -> str | None:
    """Return the sentence in the JSON of a refusal, as the usual servers write it."""
    if isinstance(body, list):
        return "; ".join(filter(None, map(_message, body))) or None
    if not isinstance(body, dict):
        return body if isinstance(body, str) else None
    for name in ("error", "detail", "message", "msg"):
        if body.get(name):
            told = _message(body[name])
            where = ".".join(map(str, body.get("loc") or []))
            return f"{where}: {told}" if where and told else told
    return None


def said_in(text: str, *secrets: str) -> str:
    """Return what a body says, a line for people, in which no secret is repeated."""
    title = _TITLE.search(text)
    plain = title[1] if title else "" if "<" in text[:50] else text
    said = _without_secrets(_message(_parsed(text)) or plain, secrets)
    return " ".join(said.split()).rstrip(".")[:LONGEST_SAID]


def read_refusal(status: int, text: str, *secrets: str) -> Refusal:
    """Read a reply that refuses a request; see `said_in`."""
    body = _parsed(text)
    inner = body.get("error") if isinstance(body, dict) else None
    parts = [part for part in (inner, body) if isinstance(part, dict)]
    named = [part["param"] for part in parts if isinstance(part.get("param"), str)]
    parameter = named[0].removeprefix("body.") if named else ""
    return Refusal(status, said_in(text, *secrets), parameter)


def refusal_behind(error: BaseException, *secrets: str) -> Refusal | None:
    """Return the reply behind an error of aiohttp, None where there is none."""
    if not isinstance(error, ClientResponseError):
        return None
    if isinstance(error.__cause__, HttpProcessingError):  # it was no HTTP
        return None
    return read_refusal(error.status, error.message or type(error).__name__, *secrets)


# -- for people ------------------------------------------------------------------------


def describe(error: BaseException, *secrets: str) -> str:
    """Return an error's name and what it means, in the server's words or plainly."""
    refusal, fault = refusal_behind(error, *secrets), fault_of(error)
    words = _without_secrets(str(error), secrets)
    if refusal is not None:
        words = refusal.words
    elif fault in (REFUSED, NO_SUCH_HOST, NO_TLS):  # plainer than aiohttp's words
        words = fault
    return f"{type(error).__name__}: {words or fault or ''}"[:LONGEST_TOLD]


def sentence(field: str, url: str, refusal: Refusal, models: Sequence[str] = ()) -> str:
    """Return the sentence that ends a start: the setting, and what the server says.

    Where it is the model's name, those that the server has are named.
    """
    advice = HINTS.get(field, "look at the server's own log")
    if models:
        more = ["..."] if len(models) > MOST_MODELS else []
        advice = f"it has: {', '.join([*models[:MOST_MODELS], *more])}"
    said = refusal.said or "nothing more"
    return f"{field}: {url} says {refusal.status}: {said}; {advice}"
