"""The HTTP connection to one inference server.

Connections are kept open, no redirect is followed, and replies are limited in size: the
address may belong to another program or a broken server, and return a file of gigabytes
or an endless stream. This is aiohttp, as openai's client takes eight times its CPU: 3.3
ms for a group's reply of 160 kB, beside 0.4.

Mends B23 of docs/host_defects.md: a connection is opened and closed for every request.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any

import aiohttp
import orjson

from rg_env.inference.request_failures import (
    FIRST_REDIRECT,
    FIRST_SERVER_FAULT,
    LONG_REPLY,
    Failure,
    RequestFailedError,
    bad_reply,
    no_reply,
    refusal,
)
from rg_env.settings.program_settings import TEMPLATE_KWARGS

KEEP_ALIVE_S = 3.0
"""Less than the 5 s after which our servers close an idle connection: what goes out
while its connection is being closed is lost."""

PAGE_S = 10.0
"""Time limit of a page: the health, the models."""

MEBIBYTE = 2**20
REFUSAL_BYTES = 2**14
"""Read of a reply that refuses a request."""


# -- the settings of a server; a config that is not ours may lack some -----------------


def url_of(base_url: str, path: str, *, is_openai: bool) -> str:
    """Return the full URL of a path below the URL in the settings.

    If the URL of an OpenAI-compatible endpoint does not end with the API version, the
    version in OpenAI's paths is left out.
    """
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
    values = headers_of(config).values()
    return [*values, *(value.removeprefix("Bearer ") for value in values)]


def extra_body_of(config: Any) -> dict[str, Any]:
    """Return what is added to the body of a request."""
    return dict(getattr(config, "extra_body", None) or {})


def sampling_extra_of(config: Any) -> dict[str, Any]:
    """Return the same without what a prompt is rendered with."""
    extra = extra_body_of(config)
    return {name: extra[name] for name in extra if name != TEMPLATE_KWARGS}


def template_kwargs_of(config: Any) -> dict[str, Any]:
    """Return what a prompt is rendered with."""
    return dict(extra_body_of(config).get(TEMPLATE_KWARGS) or {})


# -- requests --------------------------------------------------------------------------


async def read_bounded(blocks: AsyncIterable[bytes], most_bytes: int) -> list[bytes]:
    """Return the blocks of a body; `RequestFailedError` where there are more bytes."""
    read, room = [], most_bytes
    async for block in blocks:
        room -= len(block)
        if room < 0:
            most = most_bytes // MEBIBYTE
            text = f"the reply is longer than {most} MiB, far more than was asked for"
            raise bad_reply(text, LONG_REPLY)
        read.append(block)
    return read


class Connection:
    """The connections to one server; one of OpenAI's kind may be behind a proxy."""

    def __init__(self, config: Any, *, is_openai: bool) -> None:
        self.config = config
        self._is_openai = is_openai
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

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

    @contextlib.asynccontextmanager
    async def _reply(
        self, method: str, path: str, body: Any = None, timeout_s: float = 0.0
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request; what is wrong with a connection is a `RequestFailedError`."""
        config, headers = self.config, headers_of(self.config)
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            async with self._opened().request(
                *(method, url_of(config.base_url, path, is_openai=self._is_openai)),
                headers=headers,
                data=None if body is None else orjson.dumps(body),
                # Where a redirect leads, the key and the prompt are not for.
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=timeout_s or PAGE_S),
            ) as reply:
                # What fails while the body is read is raised here, and caught below.
                yield reply
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
            raise RequestFailedError(no_reply(error, *secrets_of(config))) from error

    async def post(self, path: str, body: Any, most_bytes: int) -> list[bytes]:
        """Return the blocks of the reply to a request."""
        async with self._reply("POST", path, body, self.config.timeout) as reply:
            if reply.status >= FIRST_REDIRECT:
                raise RequestFailedError(await self._refusal(reply))
            return await read_bounded(reply.content.iter_any(), most_bytes)

    async def _refusal(self, reply: aiohttp.ClientResponse) -> Failure:
        body = b""
        while len(body) < REFUSAL_BYTES and (block := await reply.content.readany()):
            body += block
        words = body[:REFUSAL_BYTES].decode("utf-8", "replace") or reply.reason or ""
        return refusal(reply.status, words, reply.headers, *secrets_of(self.config))

    async def check_health(self) -> None:
        """Raise an error if the health check fails; a server without one passes."""
        async with self._reply("GET", "/health") as reply:
            if reply.status >= FIRST_SERVER_FAULT:
                raise RequestFailedError(await self._refusal(reply))

    async def models(self, timeout_s: float = 0.0) -> list[Any]:
        """Return what the server says of each of its models, of any form."""
        async with self._reply("GET", "/v1/models", None, timeout_s) as reply:
            if reply.status >= FIRST_REDIRECT:
                raise RequestFailedError(refusal(reply.status, reply.reason or ""))
            blocks = await read_bounded(reply.content.iter_any(), MEBIBYTE)
        try:
            return list(orjson.loads(b"".join(blocks))["data"])
        except (LookupError, TypeError, ValueError) as error:
            raise bad_reply("it lists no models") from error

    async def close(self) -> None:
        """Close the connections; may be called twice."""
        if self._session is not None:
            await self._session.close()
            self._session = None
