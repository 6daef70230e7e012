"""The HTTP connection to one inference server.

Connections are kept open, no redirect is followed, and replies are limited in size: the
address may belong to another program or a broken server, and return a file of gigabytes
or an endless stream. This is aiohttp, as openai's client takes eight times its CPU: 3.3
ms for a group's reply of 160 kB, beside 0.4.

Mends B23 of docs/host_defects.md: a connection is opened and closed for every request.
"""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import orjson

from rg_env.inference.request_failures import (
    FIRST_REDIRECT,
    FIRST_SERVER_FAULT,
    LONGEST_READ,
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
LONGEST_REPLY_BYTES = 512 * MEBIBYTE
"""vLLM writes about 150 bytes a token, with its id, text and log-probability."""


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
