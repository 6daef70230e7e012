"""A client for the Atropos API over HTTP, with its errors and retries.

    ApiDownError             worth trying again
      ApiUnreachableError    nobody answers, or not as the API does
      ApiFaultError          the answer is a 5xx, or says to come later
    ApiRefusedError          another 4xx: the same request will be refused again

If the API is down, the first failure is logged with the URL and how to start the API.
The message is repeated from time to time, and the end of the outage is logged too.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

import aiohttp
import orjson

from rg_env import patience
from rg_env.errors import RunError, printable
from rg_env.inference.connection import KEEP_ALIVE_S, MEBIBYTE, read_bounded
from rg_env.inference.request_failures import (
    FIRST_REDIRECT,
    SILENT,
    RequestFailedError,
    is_temporary,
    no_reply,
)
from rg_env.settings.setting_types import without_path

logger = logging.getLogger(__name__)

T = TypeVar("T")

LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})

MOST_BYTES = 64 * MEBIBYTE
"""A longer reply is refused, whatever program stands in the place of the API."""


class ApiDownError(RunError):
    """The API gave no usable answer; trying again may help."""

    about = "the Atropos API failed"


class ApiUnreachableError(ApiDownError):
    """Nobody answered, or not in time, or not as the API does."""


class ApiFaultError(ApiDownError):
    """The API answered with a 5xx, or that it is busy."""


class ApiRefusedError(RunError):
    """The API refused a request with a 4xx."""

    about = "the Atropos API refused a request"


class ApiClient:
    """Talks to one Atropos API.

    Args:
        url: Where it is, e.g. http://localhost:8000.

    Attributes:
        name: Address for messages, without a path, which may be a secret.
        is_far: Whether it is on another machine, as far as its address tells.
        retries: Requests that had to be tried again since the run began.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self.name = without_path(self.url)
        self._path = urlsplit(self.url).path
        self.is_far = urlsplit(self.url).hostname not in LOOPBACK_HOSTS
        self.retries = 0
        self._session: aiohttp.ClientSession | None = None
        self._said_s: float | None = None

    async def request(
        self, method: str, path: str, payload: Any = None, needs: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Send one short request and return the decoded reply.

        Args:
            method: GET or POST.
            path: Below the URL, with a slash before it.
            payload: Body of the request, sent as JSON, if any.
            needs: Keys that every reply of the Atropos API contains.

        Raises:
            ApiDownError, ApiRefusedError: See the module.
        """
        body, headers = None, {}
        if payload is not None:
            body = orjson.dumps(payload)
            headers = {"Content-Type": "application/json"}
        reply = await self._exchange(method, path, body, headers)
        if not isinstance(reply, dict) or any(key not in reply for key in needs):
            raise ApiUnreachableError(
                f"{method} {path}: the reply is not one that the Atropos API gives"
            )
        return reply

    async def send(self, path: str, body: bytes, headers: Mapping[str, str]) -> Any:
        """Post what `encode_groups` returned; raises as `request`."""
        return await self._exchange("POST", path, body, headers)

    async def _exchange(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Any:
        # Not in `__init__`: aiohttp binds a session to the loop that is running.
        if self._session is None:
            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=patience.API_REQUEST_TIMEOUT_S),
                connector=aiohttp.TCPConnector(keepalive_timeout=KEEP_ALIVE_S),
            )
        try:
            async with self._session.request(
                *(method, self.url + path),
                data=body,
                headers=headers,
                allow_redirects=False,
            ) as reply:
                content = b"".join(
                    await read_bounded(reply.content.iter_any(), MOST_BYTES)
                )
                if is_temporary(reply.status):
                    raise ApiFaultError(f"{method} {path}: status {reply.status}")
                if reply.status >= FIRST_REDIRECT:
                    leads = reply.headers.get("Location")
                    said = leads or content[:300].decode("utf-8", "replace")
                    said = printable(self.without_secret(said))
                    raise ApiRefusedError(
                        f"{method} {path}: status {reply.status}: {said}"
                    )
                return orjson.loads(content)
        except (aiohttp.ClientError, asyncio.TimeoutError, ValueError) as error:
            # A ValueError: the body is no JSON, as of a proxy in place of the API.
            said = self.without_secret(no_reply(error).text)
            raise ApiUnreachableError(f"{method} {path}: {said}") from error
        except RequestFailedError as error:  # of a body without an end
            raise ApiUnreachableError(f"{method} {path}: {error}") from error

    def without_secret(self, text: str) -> str:
        """Return a text without the path of our URL, which may be the API's secret."""
        return text.replace(self._path, "/...") if self._path else text

    async def patiently(
        self, call: Callable[[], Awaitable[T]], *, even_if_refused: bool = True
    ) -> T:
        """Repeat a call, with growing waits, until the API answers it.

        Args:
            call: Makes one request, or some.
            even_if_refused: Whether to retry after a 4xx as well. If the API accepts
                this request from everybody, a 4xx comes from another program.

        Raises:
            ApiRefusedError: The API refused it.
        """
        worth_repeating = (
            (ApiDownError, ApiRefusedError) if even_if_refused else (ApiDownError,)
        )

        result = await patience.tried_again(
            call,
            lambda error: isinstance(error, worth_repeating),
            self._say_down,
            first_pause_s=patience.API_FIRST_PAUSE_S,
            longest_pause_s=patience.API_LONGEST_PAUSE_S,
        )
        if self._said_s is not None:
            self._said_s = None
            logger.warning("the Atropos API at %s answers again", self.name)
        return result

    def _say_down(self, error: Exception) -> None:
        self.retries += 1
        if self._was_said_lately():
            return
        if isinstance(error, ApiFaultError):
            how = f"answers with an error ({error})"
        else:
            how = (
                f"does not answer ({error}); start it with `run-api --port PORT`, or"
                " set env.rollout_server_url"
            )
        self._say(f"{how}; trying again")

    def say_silent(self) -> None:
        """Log that a request is taking long, unless this was logged recently."""
        if not self._was_said_lately():
            self._say(f"does not answer ({SILENT}); waiting for it")

    def _was_said_lately(self) -> bool:
        since_s = math.inf if self._said_s is None else time.monotonic() - self._said_s
        return since_s < patience.OUTAGE_SAY_AGAIN_S

    def _say(self, how: str) -> None:
        self._said_s = time.monotonic()
        logger.warning("the Atropos API at %s %s", self.name, how)

    async def close(self) -> None:
        """Close the connections; may be called twice."""
        if self._session is not None:
            await self._session.close()
            self._session = None
