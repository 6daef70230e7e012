"""The HTTP connection to one inference server, and failed requests as values.

Connections are kept open, no redirect is followed, and replies are limited in size: the
address may belong to another program or a broken server, and return a file of gigabytes
or an endless stream.

Mends B23 of docs/host_defects.md: a connection is opened and closed for every request.
"""

from __future__ import annotations

import asyncio
import dataclasses
import re
import socket
import ssl
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import aiohttp
import orjson

from rg_env.errors import RunError, printable
from rg_env.settings.server_and_launch_settings import TEMPLATE_KWARGS

# Symptoms of a server that fails.
ERROR = "answers with an error"
NO_USE = "gives no usable reply"
NO_REPLY = "does not answer"

SILENT = "it accepts the connection but does not reply"

FIRST_REDIRECT = 300
NOT_FOUND = 404
FIRST_SERVER_FAULT = 500
UNAVAILABLE = 503
ABOUT_THE_REQUEST = frozenset({400, 413, 422})
ABOUT_THE_KEY = (401, 402, 403)
RETRY_LATER = (429, UNAVAILABLE)

# A server that asks for a longer pause is broken, or its clock is wrong.
MAX_RETRY_AFTER_S = 600.0

# Kinds of failures, which are names of metrics.
BAD_REPLY = "BadReplyError"
UNUSABLE = "unusable"
ABORTED = "finish_reason_"  # the prefix for completions that the server aborted

MAX_READ_BYTES = 2**16
MAX_TEXT_CHARS = 200

# A shorter key is a placeholder, and may be a part of ordinary words.
MIN_SECRET_CHARS = 4

URL = "openai.base_url"
KEY = "openai.api_key"
MODEL = "openai.model_name"
CONTEXT = "env.max_token_length"
TOKENIZER = "env.tokenizer_name"


@dataclasses.dataclass(frozen=True)
class Failure:
    """A failed request.

    Attributes:
        kind: The name under which it is counted, in `failed_requests_<kind>`.
        text: A line for people, without a secret.
        symptom: NO_USE, ERROR or NO_REPLY.
        status: The HTTP status of an error reply.
        setting: The setting at fault, if it is known; a retry cannot help then.
        retry_after_s: Seconds for which the server wants no request.
    """

    kind: str
    text: str
    symptom: str = NO_USE
    status: int | None = None
    setting: str | None = None
    retry_after_s: float = 0.0

    def __post_init__(self) -> None:
        # The text may quote a server.
        object.__setattr__(self, "text", printable(self.text))

    def at(self, url: str) -> str:
        """Return the beginning of a sentence about the server at a URL."""
        return f"inference at {url} {self.symptom} ({self.text:.300})"


SILENCE = Failure("TimeoutError", SILENT, NO_REPLY)


class RequestFailedError(RunError):
    """A request to an inference server failed; it is never a wrong answer."""

    about = "inference failed"

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.text)
        self.failure = failure


def bad_reply(text: str) -> RequestFailedError:
    """Return the error for a reply that cannot be used, for the reason in the text."""
    return RequestFailedError(Failure(BAD_REPLY, text))


def failure_of(error: BaseException, *secrets: str) -> Failure:
    """Return the failure of a request that has raised an error."""
    name = type(error).__name__
    text = f"{name}: {_line(str(error), secrets)}"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, RequestFailedError):
            return cause.failure
        if isinstance(cause, ssl.SSLError | socket.gaierror):
            return Failure(name, str(cause), NO_REPLY, setting=URL)
        # Before Python 3.11, these are two classes.
        if isinstance(cause, asyncio.TimeoutError | TimeoutError):
            text = SILENT
        if isinstance(cause, ConnectionRefusedError):
            text = "nothing listens there"
        cause = cause.__cause__ or cause.__context__
    return Failure(name, text, NO_REPLY)


# -- error replies ---------------------------------------------------------------------

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


def _line(text: str, secrets: Sequence[str]) -> str:
    for secret in secrets:
        if len(secret) >= MIN_SECRET_CHARS:
            text = text.replace(secret, "(the key)")
    return " ".join(text.split()).rstrip(".")[:MAX_TEXT_CHARS]


def _message(body: Any) -> str | None:
    if isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, dict):
        return body if isinstance(body, str) else None
    names = ("error", "detail", "message", "msg")
    return next((_message(body[name]) for name in names if body.get(name)), None)


def body_summary(body: bytes, *secrets: str) -> str:
    """Return the message of a body as a line for people, without the secrets.

    >>> body_summary(b'{"error": {"message": "no key sk-12345"}}', "sk-12345")
    'no key (the key)'
    """
    text = body[:MAX_READ_BYTES].decode("utf-8", "replace")
    try:
        message = _message(orjson.loads(text))
    except (orjson.JSONDecodeError, RecursionError):
        message = None
    is_page = text.lstrip().startswith("<")
    words = message or ("a web page" if is_page else text)
    return _line(words, secrets)


def retry_after_s(value: str) -> float:
    """Return the seconds to wait by a `Retry-After` header, 0 for a date.

    >>> retry_after_s("20")
    20.0
    """
    return min(MAX_RETRY_AFTER_S, float(value)) if value.isdecimal() else 0.0


def refusal(
    status: int,
    body: bytes,
    headers: Mapping[str, str] = MappingProxyType({}),
    secrets: Sequence[str] = (),
) -> Failure:
    """Return the failure of a request with an error reply; see `body_summary`."""
    message = body_summary(body, *secrets)
    text = f"{status} {message}".rstrip()
    is_about_request = status in ABOUT_THE_REQUEST
    location = headers.get("Location")
    setting = None
    if location and status < NOT_FOUND:
        setting = URL
        text = f"{status}, it redirects to {_line(location, secrets)}"
    elif status in ABOUT_THE_KEY:
        setting = KEY
    elif (is_about_request or status == NOT_FOUND) and _MODEL.search(message):
        setting = MODEL
    elif is_about_request and _CONTEXT.search(message):
        setting = CONTEXT
    wait_s = 0.0
    if status in RETRY_LATER:
        wait_s = retry_after_s(headers.get("Retry-After", ""))
    return Failure(
        f"status_{status}",
        text,
        symptom=ERROR,
        status=status,
        setting=setting,
        retry_after_s=wait_s,
    )


# -- connections -----------------------------------------------------------------------

# vLLM and SGLang close an idle connection after 5 s, and a request that is sent at that
# moment is lost, so the client closes it before.
KEEP_ALIVE_S = 3.0

# Time limit of short requests: the health check, the list of models.
PAGE_S = 10.0

MEBIBYTE = 2**20
# vLLM writes about 150 bytes a token, with its id, text and log-probability.
MAX_REPLY_BYTES = 512 * MEBIBYTE


# -- the settings of a server; the config of another class may lack some ---------------


def url_of(base_url: str, path: str, *, is_openai: bool) -> str:
    """Return the full URL of a path below the URL in the settings.

    >>> url_of("http://host/v1", "/generate", is_openai=False)
    'http://host/generate'
    """
    # The URL of an endpoint may end with another version, such as /v2.
    base = base_url.rstrip("/")
    root = base.removesuffix("/v1")
    return root + (path.removeprefix("/v1") if is_openai and root == base else path)


def headers_of(config: Any) -> dict[str, str]:
    """Return the headers of requests to a server, with its key."""
    key = getattr(config, "api_key", None)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return headers | (getattr(config, "headers", None) or {})


def secrets_of(config: Any) -> list[str]:
    """Return the values that no message may repeat: the key and the headers."""
    return [value.removeprefix("Bearer ") for value in headers_of(config).values()]


def extra_body_of(config: Any) -> dict[str, Any]:
    """Return the additional fields of the body of a request."""
    return dict(getattr(config, "extra_body", None) or {})


def sampling_extra_of(config: Any) -> dict[str, Any]:
    """Return the additional fields without the arguments of the chat template."""
    extra = extra_body_of(config)
    extra.pop(TEMPLATE_KWARGS, None)
    return extra


# -- requests --------------------------------------------------------------------------


async def _read_blocks(reply: aiohttp.ClientResponse) -> list[bytes]:
    """Return the blocks of a reply's body, or raise an error if it is too long."""
    blocks: list[bytes] = []
    size_bytes = 0
    async for block in reply.content.iter_any():
        blocks.append(block)
        size_bytes += len(block)
        if size_bytes > MAX_REPLY_BYTES:
            limit_mib = MAX_REPLY_BYTES // MEBIBYTE
            raise bad_reply(f"the reply is longer than {limit_mib} MiB")
    return blocks


class Connection:
    """The connections to one server; only those of type `openai` may use a proxy.

    Each method raises a `RequestFailedError` if its request fails.
    """

    def __init__(self, config: Any) -> None:
        self.config = config
        self._is_openai = config.server_type == "openai"
        self._session: aiohttp.ClientSession | None = None

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            # OpenAI's client takes 3.3 ms of CPU time for a group's reply of 160 kB,
            # and this one 0.4 ms.
            self._session = aiohttp.ClientSession(
                # The semaphores of the framework limit the requests under way.
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S),
                read_bufsize=MEBIBYTE,
                trust_env=self._is_openai,  # the proxy, as OpenAI's client does
            )
        return self._session

    async def _request(
        self, method: str, path: str, timeout_s: float, body: Any = None
    ) -> list[bytes]:
        """Return the blocks of a reply's body."""
        headers = headers_of(self.config)
        secrets = secrets_of(self.config)
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            async with self._open_session().request(
                method,
                url_of(self.config.base_url, path, is_openai=self._is_openai),
                headers=headers,
                data=None if body is None else orjson.dumps(body),
                # The target of a redirect must not get the key and the prompt.
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=timeout_s),
            ) as reply:
                blocks = await _read_blocks(reply)
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
            raise RequestFailedError(failure_of(error, *secrets)) from error
        if reply.status >= FIRST_REDIRECT:
            content = b"".join(blocks) or (reply.reason or "").encode()
            failure = refusal(reply.status, content, reply.headers, secrets)
            raise RequestFailedError(failure)
        return blocks

    async def post(self, path: str, body: Any) -> list[bytes]:
        """Send a body as JSON, and return the blocks of the reply's body."""
        return await self._request("POST", path, self.config.timeout, body)

    async def check_health(self) -> None:
        """Raise an error if the health check fails; a server without it passes."""
        try:
            await self._request("GET", "/health", PAGE_S)
        except RequestFailedError as error:
            if (error.failure.status or FIRST_SERVER_FAULT) >= FIRST_SERVER_FAULT:
                raise

    async def models(self, timeout_s: float) -> list[Any]:
        """Return the rows of the server's list of models, which are not checked."""
        blocks = await self._request("GET", "/v1/models", timeout_s)
        try:
            return list(orjson.loads(b"".join(blocks))["data"])
        except (LookupError, TypeError, ValueError) as error:
            raise bad_reply("it lists no models") from error

    async def close(self) -> None:
        """Close the connections, which ends the requests on them.

        May be called twice; the next request opens new connections.
        """
        session = self._session
        self._session = None
        if session is not None:
            await session.close()
