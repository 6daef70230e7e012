"""What a server says when it refuses a request, and the setting that is the reason.

Pure. A reply that names no setting has no reason that could be told.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import orjson
from aiohttp import ClientResponseError
from aiohttp.http_exceptions import HttpProcessingError

from rg_env.errors import nearest
from rg_env.inference.connection_faults import (
    NO_SUCH_HOST,
    NO_TLS,
    REFUSED,
    fault_of,
    without_secrets,
)

PLAINER_THAN_AIOHTTP = frozenset({REFUSED, NO_SUCH_HOST, NO_TLS})
LONGEST_SAID, LONGEST_TOLD = 200, 500
LONGEST_READ = 2**16
"""Of a reply that is looked through for a sentence."""

NOT_FOUND = 404
OF_THE_KEY = frozenset({401, 402, 403})
ABOUT_THE_REQUEST = frozenset({400, 413, 422})
"""Statuses that say nothing of the server."""

NO_ROUTE = frozenset({NOT_FOUND, 405, 410, 501})
"""Statuses of a server that does not have what is asked."""

MAX_COMPLETION_TOKENS = "max_completion_tokens"
"""What some models want the limit called."""

MOST_MODELS = 8
"""Named in a sentence."""

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

KEY, MODEL, CONTEXT = "openai.api_key", "openai.model_name", "env.max_token_length"
TOKENIZER, EXTRA_BODY = "env.tokenizer_name", "openai.extra_body"
FIELDS = {
    **dict.fromkeys(("vocabulary", "vocab"), TOKENIZER),
    **dict.fromkeys(("max_tokens", "max_new_tokens", MAX_COMPLETION_TOKENS), CONTEXT),
    "temperature": "env.temperature (env.eval_temperature in evaluation)",
    "top_p": "env.top_p",
    "n": "env.group_size",
}
"""What a refusal names to the setting that it comes from."""

HINTS = {
    KEY: "set a key that it takes",
    CONTEXT: "set a lower one, and env.eval_max_token_length where that is set: prompt"
    " and completion together are too long",
    TOKENIZER: "name the tokenizer of its model",
    "env.group_size": "set a lower one, or openai.n_kwarg_is_ignored to true",
}


class Refusal(NamedTuple):
    """A reply that is no completion.

    Attributes:
        status: Of HTTP.
        said: What it says, a line for people.
        parameter: The request's parameter that it names, "" for none.
    """

    status: int
    said: str
    parameter: str = ""

    @property
    def words(self) -> str:
        """Status and sentence."""
        return f"{self.status} {self.said}".rstrip()

    @property
    def is_about_the_model(self) -> bool:
        """Whether the model's name is the reason."""
        is_told = self.parameter == "model" or _MODEL.search(self.said) is not None
        return is_told and self.status in ABOUT_THE_REQUEST | {NOT_FOUND}

    @property
    def is_absence(self) -> bool:
        """Whether the server does not have the path that was asked."""
        return self.status in NO_ROUTE and not self.is_about_the_model


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


def said_in(text: str, *secrets: str | None) -> str:
    """Return what a body says, a line for people.

    Args:
        text: The body; of a long one its beginning.
        secrets: What the request was sent with; they are never repeated.
    """
    title = _TITLE.search(text)
    plain = title[1] if title else "" if "<" in text[:50] else text
    said = without_secrets(_message(_parsed(text)) or plain, *secrets)
    return " ".join(said.split()).rstrip(".")[:LONGEST_SAID]


def read_refusal(status: int, text: str, *secrets: str | None) -> Refusal:
    """Read a reply that refuses a request; see `said_in`."""
    body = _parsed(text)
    error = body.get("error") if isinstance(body, dict) else None
    parts = [part for part in (error, body) if isinstance(part, dict)]
    named = [part["param"] for part in parts if isinstance(part.get("param"), str)]
    parameter = named[0].removeprefix("body.") if named else ""
    return Refusal(status, said_in(text, *secrets), parameter)


def refusal_behind(error: BaseException, *secrets: str | None) -> Refusal | None:
    """Return the reply behind an error of aiohttp, None where there is none."""
    is_http = not isinstance(error.__cause__, HttpProcessingError)
    if isinstance(error, ClientResponseError) and is_http:
        said = error.message or type(error).__name__
        return read_refusal(error.status, said, *secrets)
    return None


def describe(error: BaseException, *secrets: str | None) -> str:
    """Return an error's name and what it means, in the server's words or plainly.

    Args:
        error: What a client raised.
        secrets: What requests are sent with; they are never repeated.
    """
    refusal, fault = refusal_behind(error, *secrets), fault_of(error)
    told = str(error)
    if fault is not None and (fault in PLAINER_THAN_AIOHTTP or not told):
        told = fault
    words = without_secrets(told, *secrets) if refusal is None else refusal.words
    return f"{type(error).__name__}: {words}"[:LONGEST_TOLD]


def setting_of(refusal: Refusal, extra: Collection[str] = ()) -> str | None:
    """Return the setting that is the reason of a refusal; None where none is named.

    Args:
        refusal: What the server says.
        extra: The fields that `openai.extra_body` adds to a request.
    """
    if refusal.status in OF_THE_KEY:
        return KEY
    if refusal.is_about_the_model:
        return MODEL
    if refusal.status not in ABOUT_THE_REQUEST:
        return None
    if refusal.parameter in extra:
        return EXTRA_BODY
    if _CONTEXT.search(refusal.said):
        return CONTEXT
    named = {refusal.parameter, *re.findall(r"\w+", refusal.said)}
    fields = {**FIELDS, **dict.fromkeys(extra, EXTRA_BODY)}
    return next((fields[name] for name in fields if name in named), None)


def wants_another_limit(refusal: Refusal | None) -> bool:
    """Say whether a model takes `max_completion_tokens` in place of `max_tokens`."""
    return refusal is not None and (
        refusal.parameter == "max_tokens" and MAX_COMPLETION_TOKENS in refusal.said
    )


def hint_about_models(model: str, names: Sequence[str]) -> str | None:
    """Return what to do where a model is refused; None where nothing tells.

    Args:
        model: As the user wrote it.
        names: Those that the server has, as far as it says.
    """
    if not names or model in names:
        return None
    close = nearest(model, names) or (names[0] if len(names) == 1 else None)
    if close is not None:
        return f"did you mean {close!r}?"
    more = ", ..." if len(names) > MOST_MODELS else ""
    return f"it has: {', '.join(names[:MOST_MODELS])}{more}"


def sentence(field: str, url: str, refusal: Refusal, hint: str | None = None) -> str:
    """Return the sentence that ends a start.

    Args:
        field: The setting that is the reason.
        url: The server's, as the user wrote it.
        refusal: What it says.
        hint: What to do, where the setting alone does not tell.
    """
    what_to_do = hint or HINTS.get(field, "set what it takes")
    said = refusal.said or "nothing more"
    return f"{field}: {url} says {refusal.status}: {said}; {what_to_do}"
