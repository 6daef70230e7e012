"""The Atropos API over HTTP: one connection pool, one kind of error, patience.

    ApiDown             worth trying again
      ApiUnreachable    nobody answers
      ApiFaulted        the answer is a 5xx
    ApiRefused          a 4xx: the same request will be refused again

An API that is down is not silent: the first failure of an episode is logged with the
URL and how to start it, and so is its end.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import aiohttp
import orjson
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    stop_after_delay,
    stop_never,
    wait_exponential,
    wait_random,
)

logger = logging.getLogger(__name__)

T = TypeVar("T")

REQUEST_TIMEOUT_S = 60.0
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 10.0
GZIP_FROM_BYTES = 1024
GZIP_LEVEL = 1
"""At the host's level 9, gzip alone is 38 % of the CPU of a group of 1,500 tokens."""


class ApiDown(RuntimeError):
    """The API gave no usable answer; trying again may help."""


class ApiUnreachable(ApiDown):
    """Nobody answered, or not in time, or not in JSON."""


class ApiFaulted(ApiDown):
    """The API answered with a 5xx."""


class ApiRefused(RuntimeError):
    """The API refused a request with a 4xx."""


def encode_body(payload: Any) -> tuple[bytes, dict[str, str]]:
    """Encode a request as the host does: JSON, gzipped when that makes it smaller.

    Returns:
        The body and its headers.
    """
    try:
        body = orjson.dumps(payload)
    except TypeError:  # a lone surrogate in a message, which only json escapes
        body = json.dumps(payload).encode()
    headers = {"Content-Type": "application/json"}
    if len(body) >= GZIP_FROM_BYTES:
        headers["Content-Encoding"] = "gzip"
        body = gzip.compress(body, compresslevel=GZIP_LEVEL)
    return body, headers


class ApiClient:
    """Talks to one Atropos API.

    Args:
        url: Where it is, e.g. http://localhost:8000.

    Attributes:
        retries: Requests that had to be tried again since the run began.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self.retries = 0
        self._session: aiohttp.ClientSession | None = None
        self._is_down = False

    async def request(self, method: str, path: str, payload: Any = None) -> Any:
        """Send one request and return the decoded reply.

        Raises:
            ApiUnreachable: No answer.
            ApiFaulted: A 5xx.
            ApiRefused: A 4xx.
        """
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_S)
            self._session = aiohttp.ClientSession(timeout=timeout)
        body: bytes | None = None
        headers: dict[str, str] = {}
        if payload is not None:
            body, headers = await asyncio.to_thread(encode_body, payload)
        try:
            async with self._session.request(
                method, self.url + path, data=body, headers=headers
            ) as reply:
                text = await reply.text()
                if reply.status >= 500:
                    raise ApiFaulted(f"{method} {path}: status {reply.status}")
                if reply.status >= 400:
                    raise ApiRefused(
                        f"{method} {path}: status {reply.status}: {text[:300]}"
                    )
                return json.loads(text)
        except (aiohttp.ClientError, asyncio.TimeoutError, ValueError) as error:
            raise ApiUnreachable(
                f"{method} {path}: {type(error).__name__}: {error}"
            ) from error

    async def patiently(
        self, call: Callable[[], Awaitable[T]], give_up_after_s: float | None = None
    ) -> T:
        """Repeat a call, with growing waits, until the API answers it.

        Raises:
            ApiDown: It did not within `give_up_after_s`; None waits for ever.
            ApiRefused: The API refused it.
        """
        stop = (
            stop_never if give_up_after_s is None else stop_after_delay(give_up_after_s)
        )
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(ApiDown),
            wait=wait_exponential(multiplier=FIRST_WAIT_S, max=LONGEST_WAIT_S)
            + wait_random(0, FIRST_WAIT_S),
            stop=stop,
            before_sleep=self._say_down,
            reraise=True,
        )
        async for attempt in retrying:
            with attempt:
                result = await call()
        if self._is_down:
            self._is_down = False
            logger.warning("the Atropos API at %s answers again", self.url)
        return result

    def _say_down(self, state: RetryCallState) -> None:
        self.retries += 1
        if self._is_down or state.outcome is None:
            return
        self._is_down = True
        logger.warning(
            "the Atropos API at %s does not answer (%s); start it with"
            " `run-api --port PORT`, or set env.rollout_server_url; trying again",
            self.url,
            state.outcome.exception(),
        )

    async def close(self) -> None:
        """Close the connections; may be called twice."""
        if self._session is not None:
            await self._session.close()
            self._session = None
