"""What a server says when it refuses a request: the setting that is the reason.

    402            the account behind the key
    404, 400, 422  the model's name, where the reply speaks of it
    400, 413, 422  a parameter that the reply names, or the length of the context

Pure. A reply that names none of them has no reason that could be told.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import orjson
from aiohttp import ClientResponseError
from aiohttp.http_exceptions import HttpProcessingError

from rg_env.inference.connection_faults import without_key

LONGEST_SAID = 200
ABOUT_THE_REQUEST = frozenset({400, 413, 422})
"""Statuses that say nothing of the server."""

PAYMENT_REQUIRED = 402
FORBIDDEN = 403
NO_ROUTE = frozenset({404, 405, 410, 501})
"""Statuses of a server that does not have what is asked."""

MAX_COMPLETION_TOKENS = "max_completion_tokens"
"""What some models want the limit called."""

_CONTEXT = re.compile(
    r"context.?(length|window|size)|max_model_len|maximum model length"
    r"|too many tokens|token count exceeds|longer than the model"
    r"|(prompt|input|request)( \w+)? (is|was) too long|reduce the length",
    re.IGNORECASE,
)
_MODEL = re.compile(
    r"model.{0,80}(not found|not exist|not available|unknown|not loaded|no such)"
    r"|(no such|unknown|invalid|not a valid|not found:?) model",
    re.IGNORECASE | re.DOTALL,
)
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)

FIELDS = {
    "model": "openai.model_name",
    "max_tokens": "env.max_token_length",
    "max_new_tokens": "env.max_token_length",
    "max_completion_tokens": "env.max_token_length",
    "temperature": "env.temperature (env.eval_temperature in evaluation)",
    "top_p": "env.top_p",
    "n": "env.group_size",
}
"""Parameter of a request to the setting that it comes from."""

_NAMED = re.compile(
    r"[`'\"](model|max_tokens|max_new_tokens|max_completion_tokens|temperature|top_p|n)"
    r"[`'\"]|\b(max_tokens|max_new_tokens|max_completion_tokens|temperature|top_p)\b"
    r"|\b(n) (?:must|should|has to|is not|>|=)"
)


class Reply(NamedTuple):
    """A reply that is no completion.

    Attributes:
        status: Of HTTP.
        said: What it says, a line for people.
        parameter: The request's parameter that it names.
    """

    status: int
    said: str
    parameter: str | None = None


class UnusableReplyError(ValueError):
    """A reply is well by its status and holds nothing that a model wrote."""


def parsed(text: str | bytes) -> Any:
    """Return the JSON value of a body, None where it is none."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def message_in(body: Any) -> str | None:
    """Return the sentence in the JSON of an error, as the usual servers write it."""
    if isinstance(body, list):
        return "; ".join(filter(None, map(message_in, body))) or None
    if not isinstance(body, dict):
        return body if isinstance(body, str) else None
    for name in ("error", "detail", "message", "msg"):
        if body.get(name):
            told = message_in(body[name])
            where = ".".join(map(str, body.get("loc") or []))
            return f"{where}: {told}" if where and told else told
    return None


def told_error(body: Any) -> str | None:
    """Return what the JSON of a reply with status 200 tells of an error, if it does."""
    if not isinstance(body, dict) or not body.get("error"):
        return None
    said = message_in(body) or str(body["error"])
    return f"it sends an error in the place of a reply: {said[:LONGEST_SAID]}"


def _parameter(body: Any, said: str) -> str | None:
    error = body.get("error") if isinstance(body, dict) else None
    for part in (error, body):
        named = part.get("param") if isinstance(part, dict) else None
        if isinstance(named, str) and named:
            return named
    found = _NAMED.search(said)
    return next(filter(None, found.groups()), None) if found else None


def read_refusal(status: int, text: str, *keys: str | None) -> Reply:
    """Read a reply that refuses a request.

    Args:
        status: Of HTTP.
        text: The body.
        keys: What the request was sent with; they are never repeated.
    """
    body = parsed(text)
    title = _TITLE.search(text)
    said = message_in(body) or (title[1] if title else "" if "<" in text[:50] else text)
    for key in keys:
        said = without_key(said, key)
    said = " ".join(said.split()).rstrip(".")
    return Reply(status, said[:LONGEST_SAID], _parameter(body, said))


def refusal_behind(error: BaseException, *keys: str | None) -> Reply | None:
    """Return the reply behind an error of a client, None where there is none."""
    status, response = (getattr(error, k, None) for k in ("status_code", "response"))
    if isinstance(status, int) and response is not None:  # an error of openai
        return read_refusal(status, response.text, *keys)
    is_http = not isinstance(error.__cause__, HttpProcessingError)
    if isinstance(error, ClientResponseError) and is_http:
        return read_refusal(error.status, error.message, *keys)
    return None


def is_no_route(status: int) -> bool:
    """Say whether a status is that of a server which does not have what is asked."""
    return status in NO_ROUTE


def wants_another_limit(reply: Reply | None) -> bool:
    """Say whether a model takes `max_completion_tokens` in place of `max_tokens`."""
    if reply is None or reply.parameter != "max_tokens":
        return False
    return MAX_COMPLETION_TOKENS in reply.said


def is_about_the_model(reply: Reply) -> bool:
    """Say whether a server refuses a request because of the model's name."""
    if reply.status not in ABOUT_THE_REQUEST | {404}:
        return False
    return reply.parameter == "model" or _MODEL.search(reply.said) is not None


def why_setting(url: str, reply: Reply) -> str | None:
    """Return the sentence that names the setting at fault; None where none is.

    Args:
        url: The server's, as the user wrote it.
        reply: What the server says.
    """
    told = f"{url} says {reply.status}: {reply.said or 'nothing more'}"
    if reply.status == PAYMENT_REQUIRED:
        return (
            f"openai.api_key: the account behind the key has to be paid for ({told});"
            " pay, or use another key"
        )
    if reply.status not in ABOUT_THE_REQUEST:
        return None
    if _CONTEXT.search(reply.said):
        return (
            "env.max_token_length: prompt and completion together are longer than the"
            f" model takes ({told}); set a lower one, and a lower"
            " env.eval_max_token_length where that is set"
        )
    if reply.parameter not in FIELDS or reply.parameter == "model":
        return None
    field = FIELDS[reply.parameter]
    hint = "set a value that it takes"
    if reply.parameter == "n":
        hint = "set openai.n_kwarg_is_ignored to true, or env.group_size lower"
    return f"{field}: {reply.parameter} is refused ({told}); {hint}"


def why_key(url: str, reply: Reply) -> str:
    """Return the sentence about a key that a server does not take."""
    told = f"{reply.status}: {reply.said}" if reply.said else f"{reply.status}"
    if reply.status == FORBIDDEN:
        return (
            f"openai.api_key: {url} refuses the request ({told}); set a key that may"
            " use the model"
        )
    return (
        f"openai.api_key: {url} does not take the key ({told}); set the one that it"
        " wants"
    )


def why_refused(url: str, reply: Reply) -> str:
    """Return the sentence about a server that refuses whatever it is asked."""
    return (
        f"openai.base_url: {url} refuses every request ({reply.status}:"
        f" {reply.said or 'it says no reason'}); look at the server's own log"
    )
