"""What a server says when it refuses a request, and the setting that is the reason.

    401, 402, 403  the key, the account behind it
    404, 400, 422  the model's name, where the reply speaks of it
    400, 413, 422  the length of the context, the tokenizer, or a parameter that the
                   reply names

Pure. A reply that names none of them has no reason that could be told.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson
from aiohttp import ClientResponseError
from aiohttp.http_exceptions import HttpProcessingError

from rg_env.errors import nearest
from rg_env.inference.connection_faults import without_secrets

LONGEST_SAID = 200
LONGEST_READ = 2**16
"""Of a reply that is looked through for a sentence."""

UNAUTHORIZED, PAYMENT_REQUIRED, FORBIDDEN, NOT_FOUND = 401, 402, 403, 404
OF_THE_KEY = frozenset({UNAUTHORIZED, PAYMENT_REQUIRED, FORBIDDEN})
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
_VOCABULARY = re.compile(r"vocab|token ids? .{0,40}out of range", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)

KEY, MODEL, CONTEXT = "openai.api_key", "openai.model_name", "env.max_token_length"
TOKENIZER, EXTRA_BODY = "env.tokenizer_name", "openai.extra_body"
FIELDS = {
    "max_tokens": CONTEXT,
    "max_new_tokens": CONTEXT,
    MAX_COMPLETION_TOKENS: CONTEXT,
    "temperature": "env.temperature (env.eval_temperature in evaluation)",
    "top_p": "env.top_p",
    "n": "env.group_size",
}
"""Parameter of a request to the setting that it comes from."""

HINTS: Mapping[str, str] = MappingProxyType(
    {
        KEY: "set a key that it takes",
        CONTEXT: "set a lower one: prompt and completion together are too long",
        TOKENIZER: "name the tokenizer of its model",
        "env.group_size": "set a lower one, or openai.n_kwarg_is_ignored to true",
    }
)
OTHER_HINT = "set what it takes"

_NAMED = re.compile(
    rf"[`'\"](model|{'|'.join(FIELDS)})[`'\"]"
    rf"|\b({'|'.join(FIELDS.keys() - {'n'})})\b"
    r"|\b(n) (?:must|should|has to|is not|>|=)"
)


class Refusal(NamedTuple):
    """A reply that is no completion.

    Attributes:
        status: Of HTTP.
        said: What it says, a line for people.
        parameter: The request's parameter that it names.
    """

    status: int
    said: str
    parameter: str | None = None

    @property
    def words(self) -> str:
        """Status and sentence."""
        return f"{self.status} {self.said}".rstrip()


# -- reading ---------------------------------------------------------------------------


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


def _parameter(body: Any, said: str) -> str | None:
    error = body.get("error") if isinstance(body, dict) else None
    for part in (error, body):
        named = part.get("param") if isinstance(part, dict) else None
        if isinstance(named, str) and named:
            return named.removeprefix("body.")
    found = _NAMED.search(said)
    return next(filter(None, found.groups()), None) if found else None


def read_refusal(status: int, text: str, *secrets: str | None) -> Refusal:
    """Read a reply that refuses a request; see `said_in`."""
    said = said_in(text, *secrets)
    return Refusal(status, said, _parameter(_parsed(text), said))


def refusal_behind(error: BaseException, *secrets: str | None) -> Refusal | None:
    """Return the reply behind an error of aiohttp, None where there is none."""
    is_http = not isinstance(error.__cause__, HttpProcessingError)
    if isinstance(error, ClientResponseError) and is_http:
        said = error.message or type(error).__name__
        return read_refusal(error.status, said, *secrets)
    return None


# -- the setting -----------------------------------------------------------------------


def is_about_the_model(refusal: Refusal) -> bool:
    """Say whether a server refuses a request because of the model's name."""
    if refusal.status not in ABOUT_THE_REQUEST | {NOT_FOUND}:
        return False
    return refusal.parameter == "model" or _MODEL.search(refusal.said) is not None


def is_absent(refusal: Refusal) -> bool:
    """Say whether a server does not have the path that was asked."""
    return refusal.status in NO_ROUTE and not is_about_the_model(refusal)


def wants_another_limit(refusal: Refusal | None) -> bool:
    """Say whether a model takes `max_completion_tokens` in place of `max_tokens`."""
    if refusal is None or refusal.parameter != "max_tokens":
        return False
    return MAX_COMPLETION_TOKENS in refusal.said


def setting_of(refusal: Refusal, extra: Collection[str] = ()) -> str | None:
    """Return the setting that is the reason of a refusal; None where none is named.

    Args:
        refusal: What the server says.
        extra: The fields that `openai.extra_body` adds to a request.
    """
    status, said, parameter = refusal
    if status in OF_THE_KEY:
        return KEY
    if is_about_the_model(refusal):
        return MODEL
    if status not in ABOUT_THE_REQUEST:
        return None
    if parameter in extra:
        return EXTRA_BODY
    if _VOCABULARY.search(said):
        return TOKENIZER
    field = CONTEXT if _CONTEXT.search(said) else FIELDS.get(parameter or "")
    is_extra = not set(re.findall(r"\w+", said)).isdisjoint(extra)
    return field or (EXTRA_BODY if is_extra else None)


def hint_about_models(model: str, names: Sequence[str]) -> str:
    """Return what to do where a model is refused.

    Args:
        model: As the user wrote it.
        names: Those that the server has, as far as it says.
    """
    if not names or model in names:
        return OTHER_HINT
    close = nearest(model, names) or (names[0] if len(names) == 1 else None)
    if close is not None:
        return f"did you mean {close!r}?"
    return (
        "it has: "
        + ", ".join(names[:MOST_MODELS])
        + ", ..." * (len(names) > MOST_MODELS)
    )


def sentence(field: str, url: str, refusal: Refusal, hint: str | None = None) -> str:
    """Return the sentence that ends a start.

    Args:
        field: The setting that is the reason.
        url: The server's, as the user wrote it.
        refusal: What it says.
        hint: What to do, where the setting alone does not tell.
    """
    told = f"{refusal.status}: {refusal.said or 'nothing more'}"
    what_to_do = hint or HINTS.get(field, OTHER_HINT)
    return f"{field}: {url} says {told}; {what_to_do}"
