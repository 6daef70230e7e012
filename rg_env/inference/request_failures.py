"""A failed request as a value: its kind, its message, and the setting at fault."""

from __future__ import annotations

import asyncio
import dataclasses
import errno
import re
import socket
import ssl
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from rg_env.errors import RunError, printable

ERROR, NO_USE = "answers with an error", "gives no usable reply"
NOTHING = "does not answer"
"""What a server does in the place of answering."""

SILENT = "it accepts the connection but does not reply"

FIRST_REDIRECT, NOT_FOUND, FIRST_SERVER_FAULT, UNAVAILABLE = 300, 404, 500, 503
ABOUT_THE_REQUEST = frozenset({400, 413, 422})
OF_THE_KEY = frozenset({401, 402, 403})

BAD_REPLY, UNUSABLE, CUT_OFF = "BadReplyError", "unusable", "finish_reason_"
"""Kinds, which are names of metrics; the last begins that of a completion that was
broken off."""

LONGEST_READ, LONGEST_TEXT = 2**16, 200

SHORTEST_SECRET = 4
"""A shorter key is a placeholder, and would be found in every second word."""

URL, KEY, MODEL = "openai.base_url", "openai.api_key", "openai.model_name"
CONTEXT, TOKENIZER = "env.max_token_length", "env.tokenizer_name"
ADVICE = {
    KEY: "; set a key that the server accepts",
    MODEL: "; set a model that the server has",
    CONTEXT: "; set a lower one, and env.eval_max_token_length where that is set:"
    " prompt and completion together are too long",
}


@dataclasses.dataclass(frozen=True)
class Failure:
    """A failed request; no secret stands in its text, a line for people."""

    kind: str  # what it is counted as, in `failed_requests_<kind>`
    text: str
    how: str = NO_USE  # or ERROR, or NOTHING
    status: int | None = None  # of the reply that refuses
    setting: str | None = None  # the setting at fault, where it is known

    def __post_init__(self) -> None:
        # It may repeat a server's words.
        object.__setattr__(self, "text", printable(self.text))


SILENCE = Failure("TimeoutError", SILENT, NOTHING)


class RequestFailedError(RunError):
    """A request to an inference server failed; it is never a wrong answer."""

    about = "inference failed"

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.text)
        self.failure = failure


def bad_reply(text: str) -> RequestFailedError:
    """Return the error for a reply that cannot be used; the text says why."""
    return RequestFailedError(Failure(BAD_REPLY, text))


# -- no reply came ---------------------------------------------------------------------


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def permanent_fault(error: BaseException) -> str | None:
    """Return the message of an error that will not go away by waiting, or None.

    It is of a certificate, a program without TLS, or a host that has no name.
    """
    permanent = (ssl.SSLError, socket.gaierror)
    return next((str(c) for c in _causes(error) if isinstance(c, permanent)), None)


def no_reply(error: BaseException, *secrets: str) -> Failure:
    """Return the failure of a request to which no reply came."""
    name, fault = type(error).__name__, permanent_fault(error)
    if fault is not None:
        return Failure(name, fault, NOTHING, setting=URL)
    for cause in _causes(error):
        if getattr(cause, "errno", None) == errno.ECONNREFUSED:
            return Failure(name, "nothing listens there", NOTHING)
        # They are two classes before Python 3.11.
        if isinstance(cause, asyncio.TimeoutError | TimeoutError):
            return Failure(name, SILENT, NOTHING)
    return Failure(name, f"{name}: {_line(str(error), secrets)}", NOTHING)


# -- a reply that refuses --------------------------------------------------------------

_MODEL = re.compile(
    r"model.{0,80}(not (found|exist|available|loaded)|unknown|no such)"
    r"|(no such|unknown|invalid|not a valid|not found:?) model",
    re.IGNORECASE | re.DOTALL,
)
_CONTEXT = re.compile(
    r"context.?(length|window|size)|max_model_len|maximum model length"
    r"|too (long|many tokens)|token count exceeds|longer than the model"
    r"|reduce the length|max_(new_|completion_)?tokens",
    re.IGNORECASE,
)


def _setting_of(status: int, text: str) -> str | None:
    if status in OF_THE_KEY:
        return KEY
    if status in ABOUT_THE_REQUEST | {NOT_FOUND} and _MODEL.search(text):
        return MODEL
    return CONTEXT if status in ABOUT_THE_REQUEST and _CONTEXT.search(text) else None


def _line(text: str, secrets: Sequence[str]) -> str:
    for secret in secrets:
        if len(secret) >= SHORTEST_SECRET:
            text = text.replace(secret, "(the key)")
    return " ".join(text.split()).rstrip(".")[:LONGEST_TEXT]


def _message(body: Any) -> str | None:
    if isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, dict):
        return body if isinstance(body, str) else None
    names = ("error", "detail", "message", "msg")
    return next((_message(body[name]) for name in names if body.get(name)), None)


def body_summary(text: str, *secrets: str) -> str:
    """Return what a body says, a line for people, in which no secret is repeated."""
    try:
        message = _message(orjson.loads(text))
    except (orjson.JSONDecodeError, RecursionError):
        message = None
    is_page = text.lstrip().startswith("<")
    return _line(message or ("a web page" if is_page else text), secrets)


def refusal(status: int, body: str, location: str = "", *secrets: str) -> Failure:
    """Return the failure of a request that a reply refuses; see `body_summary`."""
    words = body_summary(body, *secrets)
    setting, text = _setting_of(status, words), f"{status} {words}".rstrip()
    if location and status < NOT_FOUND:
        setting = URL
        text = f"{status}, it redirects to {_line(location, secrets)}"
    text += ADVICE.get(setting or "", "")
    return Failure(f"status_{status}", text, ERROR, status, setting)
