"""The HTTP connection to one inference server, and failed requests as values.

Connections are kept open, no redirect is followed, and replies are limited in size: the
address may belong to another program or a broken server, and return a file of gigabytes
or an endless stream.

Mends B23 of docs/host_defects.md: a connection is opened and closed for every request.
"""

from __future__ import annotations

import asyncio
import dataclasses
import errno
import re
import socket
import ssl
from collections.abc import Iterator, Sequence
from typing import Any

import aiohttp
import orjson

from rg_env.errors import RunError, printable
from rg_env.settings.program_settings import TEMPLATE_KWARGS

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

# A shorter key is a placeholder, and would be found in every second word.
SHORTEST_SECRET = 4

URL, KEY, MODEL = "openai.base_url", "openai.api_key", "openai.model_name"
CONTEXT, TOKENIZER = "env.max_token_length", "env.tokenizer_name"


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

    def at(self, url: str) -> str:
        """Return the beginning of a sentence about the server at a URL."""
        return f"inference at {url} {self.how} ({self.text:.300})"


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
    """Return the message of an error that will not go away by waiting, or None."""
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
    return Failure(f"status_{status}", text, ERROR, status, setting)


# -- connections -----------------------------------------------------------------------

# Less than the 5 s after which our servers close an idle connection: what goes out
# while its connection is being closed is lost.
KEEP_ALIVE_S = 3.0

# Time limit of a page: the health, the models.
PAGE_S = 10.0

MEBIBYTE = 2**20
# vLLM writes about 150 bytes a token, with its id, text and log-probability.
LONGEST_REPLY_BYTES = 512 * MEBIBYTE


# -- the settings of a server; a config that is not ours may lack some -----------------


def url_of(base_url: str, path: str, *, is_openai: bool) -> str:
    """Return the full URL of a path below the URL in the settings."""
    # An endpoint's URL may end with another version than OpenAI's paths have.
    base = base_url.rstrip("/")
    root = base.removesuffix("/v1")
    return root + (path.removeprefix("/v1") if is_openai and root == base else path)


def headers_of(config: Any) -> dict[str, str]:
    """Return the headers that requests to a server carry, the key's among them."""
    key = getattr(config, "api_key", None)
    own = {"Authorization": f"Bearer {key}"} if key else {}
    return own | (getattr(config, "headers", None) or {})


def secrets_of(config: Any) -> list[str]:
    """Return the values that no message may repeat: the key and the headers."""
    return [value.removeprefix("Bearer ") for value in headers_of(config).values()]


def extra_body_of(config: Any) -> dict[str, Any]:
    """Return what is added to the body of a request."""
    return dict(getattr(config, "extra_body", None) or {})


def sampling_extra_of(config: Any) -> dict[str, Any]:
    """Return the same without what a prompt is rendered with."""
    extra = extra_body_of(config)
    return {name: extra[name] for name in extra if name != TEMPLATE_KWARGS}


# -- requests --------------------------------------------------------------------------


class Connection:
    """The connections to one server; one of OpenAI's kind may be behind a proxy.

    Whatever is wrong with a request is a `RequestFailedError`.
    """

    def __init__(self, config: Any, *, is_openai: bool) -> None:
        self.config = config
        self._is_openai = is_openai
        self._session: aiohttp.ClientSession | None = None

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            # Openai's client takes eight times the CPU: 3.3 ms for a group's reply of
            # 160 kB, beside 0.4.
            self._session = aiohttp.ClientSession(
                # The semaphores of the framework limit what is under way.
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S),
                read_bufsize=MEBIBYTE,
                trust_env=self._is_openai,  # for its proxy, as openai's client does
            )
        return self._session

    async def _request(
        self, method: str, path: str, timeout_s: float, body: Any = None
    ) -> list[bytes]:
        """Return the blocks of a reply's body."""
        config, headers = self.config, headers_of(self.config)
        blocks: list[bytes] = []
        room = LONGEST_REPLY_BYTES
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            async with self._opened().request(
                *(method, url_of(config.base_url, path, is_openai=self._is_openai)),
                headers=headers,
                data=None if body is None else orjson.dumps(body),
                # Where a redirect leads, the key and the prompt are not for.
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=timeout_s),
            ) as reply:
                async for block in reply.content.iter_any():
                    blocks.append(block)
                    if (room := room - len(block)) < 0:
                        most = LONGEST_REPLY_BYTES // MEBIBYTE
                        raise bad_reply(f"the reply is longer than {most} MiB")
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
            raise RequestFailedError(no_reply(error, *secrets_of(config))) from error
        if reply.status >= FIRST_REDIRECT:
            text = b"".join(blocks)[:LONGEST_READ].decode("utf-8", "replace")
            text = text or reply.reason or ""
            place = reply.headers.get("Location", "")
            failure = refusal(reply.status, text, place, *secrets_of(config))
            raise RequestFailedError(failure)
        return blocks

    async def post(self, path: str, body: Any) -> list[bytes]:
        """Return the blocks of the reply to a request."""
        return await self._request("POST", path, self.config.timeout, body)

    async def check_health(self) -> None:
        """Raise an error if the health check fails; a server without one passes."""
        try:
            await self._request("GET", "/health", PAGE_S)
        except RequestFailedError as error:
            if (error.failure.status or FIRST_SERVER_FAULT) >= FIRST_SERVER_FAULT:
                raise

    async def models(self, timeout_s: float) -> list[Any]:
        """Return what the server says of each of its models, of any form."""
        blocks = await self._request("GET", "/v1/models", timeout_s)
        try:
            return list(orjson.loads(b"".join(blocks))["data"])
        except (LookupError, TypeError, ValueError) as error:
            raise bad_reply("it lists no models") from error

    async def close(self) -> None:
        """Close the connections; may be called twice."""
        if self._session is not None:
            await self._session.close()
            self._session = None
