"""The HTTP connection to one inference server.

Connections are kept open. Replies are limited in size: the address may belong to
another program or a broken server, and return a file of gigabytes or an endless stream.

Mends B23 of docs/host_defects.md: a connection is opened and closed for every request.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import re
from collections.abc import AsyncIterable, AsyncIterator, Callable
from typing import Any

import aiohttp
import orjson

from rg_env.inference.request_failures import (
    FIRST_REDIRECT,
    FIRST_SERVER_FAULT,
    LONG_REPLY,
    MODEL,
    Failure,
    RequestFailedError,
    bad_reply,
    no_reply,
    refusal,
)
from rg_env.inference.routes import NO_SUCH_FORM, Body
from rg_env.settings.server_settings import TEMPLATE_KWARGS

logger = logging.getLogger(__name__)

CHAT = "/v1/chat/completions"
V1 = "/v1"
"""What paths of the OpenAI kind begin with, and the settings' URL ends with."""

_OVERLONG = re.compile(r"(/(chat/)?completions)?/*$")
_VERSIONS = re.compile(rf"({V1})+$")

KEEP_ALIVE_S = 3.0
"""Less than the 5 s after which our servers close an idle connection: what goes out
while its connection is being closed is lost."""

PAGE = aiohttp.ClientTimeout(total=10.0)

MEBIBYTE = 2**20
REFUSAL_BYTES = 2**14
"""Read of a reply that refuses a request."""

MOST_MODELS = 8
"""Named in a sentence."""

ANY_REPLY_BYTES = 16 * MEBIBYTE
TOKEN_BYTES = 256
"""A completion's reply may have so many bytes, and so many for each token that it may
hold: vLLM writes about 150, with its id, its text and its log-probability, each more
than once."""


# -- the settings of a server ----------------------------------------------------------
#
# `ServerSettings` checks them; a config that somebody else made has none but the URL.


def url_of(base_url: str, path: str, *, is_openai: bool) -> str:
    """Return the full URL of a path below the URL in the settings.

    If the URL of an OpenAI-compatible endpoint does not end with the API version, the
    version in OpenAI's paths is left out.
    """
    base = _OVERLONG.sub("", base_url, count=1)
    root = _VERSIONS.sub("", base)
    if is_openai and root == base:
        path = path.removeprefix(V1)
    return root + path


def headers_of(config: Any) -> dict[str, str]:
    """Return the headers that requests to a server carry beside the key."""
    return dict(getattr(config, "headers", None) or {})


def secrets_of(config: Any) -> list[str]:
    """Return the values that no message may repeat: the key and the headers."""
    values = list(headers_of(config).values())
    tokens = [value.removeprefix("Bearer ") for value in values]
    return [getattr(config, "api_key", None) or "", *values, *tokens]


def extra_body_of(config: Any) -> dict[str, Any]:
    """Return what is added to the body of a request."""
    return dict(getattr(config, "extra_body", None) or {})


def sampling_extra_of(config: Any) -> dict[str, Any]:
    """Return the same without what a prompt is rendered with."""
    extra = extra_body_of(config)
    extra.pop(TEMPLATE_KWARGS, None)
    return extra


def template_kwargs_of(config: Any) -> dict[str, Any]:
    """Return what a prompt is rendered with."""
    return dict(extra_body_of(config).get(TEMPLATE_KWARGS) or {})


# -- requests --------------------------------------------------------------------------


def most_bytes(n: int, tokens: int) -> int:
    """Return how long a reply of n completions may be, of so many tokens in all."""
    return ANY_REPLY_BYTES + TOKEN_BYTES * n * tokens


async def read_bounded(blocks: AsyncIterable[bytes], most_bytes: int) -> list[bytes]:
    """Return the blocks of a body; `RequestFailedError` where there are more bytes."""
    read, left = [], most_bytes
    async for block in blocks:
        left -= len(block)
        if left < 0:
            most = most_bytes // MEBIBYTE
            said = f"the reply is longer than {most} MiB, far more than was asked for"
            raise bad_reply(said, LONG_REPLY)
        read.append(block)
    return read


class Connection:
    """The connections to one server.

    Args:
        config: The server's settings.
        is_openai: Whether it is an endpoint of the OpenAI kind, behind a proxy perhaps.

    Attributes:
        ignores_n: Whether it returns one completion whatever n is.
    """

    def __init__(self, config: Any, *, is_openai: bool) -> None:
        self._config = config
        self._secrets = secrets_of(config)
        self._is_openai = is_openai
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.ignores_n: bool = config.n_kwarg_is_ignored

    def _opened(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        # A session belongs to one event loop; a program may run several in turn.
        if self._session is None or self._loop is not loop:
            self._loop = loop
            self._session = aiohttp.ClientSession(
                # The semaphores of the framework limit what is under way.
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S),
                read_bufsize=MEBIBYTE,
                trust_env=self._is_openai,  # for its proxy, as openai's client does
            )
        return self._session

    def query_one_by_one(self) -> None:
        """Query as often as completions are wanted, from now on."""
        if self.ignores_n:
            return
        self.ignores_n = True
        logger.warning(
            "%s returns one completion whatever n is: it is queried as often as there"
            " are rollouts",
            self._config.base_url,
        )

    async def query(
        self, path: str, body: Callable[[int], Body], n: int, most_tokens: int
    ) -> list[list[bytes]]:
        """Query for `n` completions; return the replies' bodies, as a rule one.

        Args:
            path: Of the route.
            body: Makes that of a request for so many completions.
            n: How many.
            most_tokens: Of each, the prompt's included.

        Raises:
            RequestFailedError: It was refused, no reply came, or one that goes on.
        """
        times, at_once = (n, 1) if self.ignores_n else (1, n)
        most = most_bytes(at_once, most_tokens)
        requests = [
            asyncio.ensure_future(self._post(path, body(at_once), most))
            for _ in range(times)
        ]
        try:
            return list(await asyncio.gather(*requests))
        finally:
            for request in requests:
                request.cancel()

    @contextlib.asynccontextmanager
    async def _reply(
        self, method: str, path: str, **more: Any
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request; what is wrong with a connection is a `RequestFailedError`."""
        config, headers = self._config, {}
        if config.api_key:
            headers["Authorization"] = f"Bearer {config.api_key}"
        headers |= headers_of(config) | more.pop("headers", {})
        url = url_of(config.base_url, path, is_openai=self._is_openai)
        try:
            async with self._opened().request(
                # Where a redirect leads, the key and the prompt are not for.
                *(method, url),
                headers=headers,
                allow_redirects=False,
                **more,
            ) as reply:
                # What fails while the body is read is raised here, and caught below.
                yield reply
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
            raise RequestFailedError(no_reply(error, *self._secrets)) from error

    async def _post(self, path: str, body: Body, most: int) -> list[bytes]:
        async with self._reply(
            "POST",
            path,
            data=orjson.dumps(body),
            headers={"Content-Type": "application/json"},
            timeout=aiohttp.ClientTimeout(total=self._config.timeout),
        ) as reply:
            if reply.status >= FIRST_REDIRECT:
                raise RequestFailedError(await self._refusal(reply))
            return await read_bounded(reply.content.iter_any(), most)

    async def _refusal(self, reply: aiohttp.ClientResponse) -> Failure:
        """Read what a reply says that refuses; name the models, if that is why."""
        said = b""
        async for block in reply.content.iter_chunked(REFUSAL_BYTES):
            said += block
            if len(said) >= REFUSAL_BYTES:
                break
        words = said[:REFUSAL_BYTES].decode("utf-8", "replace") or reply.reason or ""
        failure = refusal(reply.status, words, reply.headers, *self._secrets)
        names = await self._model_names() if failure.setting == MODEL else []
        if not names:
            return failure
        more = ["..."] if len(names) > MOST_MODELS else []
        has = f"it has: {', '.join([*names[:MOST_MODELS], *more])}"
        return dataclasses.replace(failure, advice=has)

    async def check_health(self) -> None:
        """Raise an error if the health check fails; a server without one passes."""
        async with self._reply("GET", "/health", timeout=PAGE) as reply:
            if reply.status >= FIRST_SERVER_FAULT:
                raise RequestFailedError(await self._refusal(reply))

    async def _model_names(self) -> list[str]:
        """Return the models that the server says it has; none where it does not say."""
        try:
            async with self._reply("GET", "/v1/models", timeout=PAGE) as reply:
                listed = orjson.loads(await reply.content.read(MEBIBYTE))
                return [str(row["id"]) for row in listed["data"]]
        except (RequestFailedError, *NO_SUCH_FORM):
            return []

    async def close(self) -> None:
        """Close the connections; may be called twice."""
        if self._session is not None:
            await self._session.close()
            self._session = None
