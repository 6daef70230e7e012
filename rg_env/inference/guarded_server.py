"""The framework's clients with a circuit each: a server that fails is left out.

Mends B22 of docs/host_defects.md. The framework's `ServerManager` asks the server with
the most free places among those whose `server_healthy` is true; here that is what the
circuit says. Left alone it would send nearly everything to a server that fails at once,
because its places are always free, and would wait for a dead one for ever. Differs from
the framework's clients:

    tries       one; the next is `Inference`'s, at whatever server is asked then
    429         the server rests as long as it says, within bounds
    left out    what waits for a place there, or hangs there, is asked elsewhere
"""

from __future__ import annotations

import asyncio
import email.utils
import inspect
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextvars import Context
from datetime import datetime, timezone
from typing import Any

from atroposlib.envs.server_handling.server_baseline import APIServer

from rg_env.inference.circuit_breaker import Circuit
from rg_env.inference.connection_faults import describe
from rg_env.inference.reply_reasons import ABOUT_THE_REQUEST
from rg_env.inference.server_extras import secrets_of

BUSY = 429
UNAVAILABLE = 503
DEFAULT_REST_S = 1.0
"""Of a server that is busy and does not say for how long."""

TRIAL_TEXT = "hi"
TRIAL_TIMEOUT_S = 120.0
"""Even one token waits behind what the server has begun."""


class ServerLeftOutError(ConnectionError):
    """The server is not asked now; another may be."""


def retry_after_s(header: str | None, now: datetime) -> float:
    """Return for how long a server wants to rest: seconds or a date, as HTTP has it."""
    if header is None:
        return DEFAULT_REST_S
    if header.strip().isdecimal():
        return float(header)
    try:
        until = email.utils.parsedate_to_datetime(header)
    except ValueError:
        return DEFAULT_REST_S
    if until.tzinfo is None:  # "-0000"
        until = until.replace(tzinfo=timezone.utc)
    return (until - now).total_seconds()


def _status_of(error: BaseException) -> tuple[int | None, Mapping[str, str]]:
    """Return status and headers of the reply behind an error of aiohttp or openai."""
    reply = getattr(error, "response", error)
    headers = getattr(reply, "headers", None)
    status = getattr(reply, "status", getattr(reply, "status_code", None))
    return status, {} if headers is None else headers


def why_all_out(servers: Iterable[Any]) -> str | None:
    """Return why none of some servers is asked now, None where one is."""
    reasons = []
    for server in servers:
        if getattr(server, "server_healthy", True):
            return None
        reasons.append(getattr(server, "why_out", "the health check fails"))
    return reasons[0]


def _ignore(server: GuardedServer, error: Exception) -> None:
    pass


class GuardedServer(APIServer):
    """A client that knows when its server is not to be asked.

    Attributes:
        circuit: Opened by failures in a row, closed by a trial or an answer.
        on_failure: Told of each request that failed, trials included.
        has_answered: Whether a request was ever answered with something of use.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Build the framework's client."""
        self.circuit = Circuit()
        self._under_way: set[asyncio.Future[Any]] = set()
        self._trial: asyncio.Future[None] | None = None
        self.on_failure: Callable[[GuardedServer, Exception], None] = _ignore
        self.has_answered = False
        super().__init__(*args, **kwargs)

    @property
    def server_healthy(self) -> bool:
        """Whether the framework is to choose this server."""
        return self.circuit.admits

    @server_healthy.setter
    def server_healthy(self, is_healthy: bool) -> None:
        # Where the framework's own health check runs, it sets this again and again.
        if not is_healthy:
            self.circuit.note_failure("the health check fails")

    @property
    def why_out(self) -> str | None:
        """Why the server is not asked now, None where it is."""
        return None if self.circuit.admits else self.circuit.reason

    @property
    def is_resting(self) -> bool:
        """Whether the server is left alone because it asked for that."""
        return not self.circuit.admits and not self.circuit.is_open

    async def _ask_little(self) -> None:
        """Ask for one token, which costs next to nothing; raises where it fails."""
        greeting = [{"role": "user", "content": TRIAL_TEXT}]
        await self._chat_completion_wrapper(
            model=self.config.model_name, messages=greeting, max_tokens=1
        )

    def _refuse_unusable(self, reply: Any) -> None:
        """Raise where a reply is of no use at all; a subclass knows when."""

    def try_if_due(self) -> None:
        """Begin to try a server that is left out, if its pause is over."""
        if self.circuit.begin_trial():
            # Not in the context of the request that happens to begin it, whose reply
            # this one would be told of as.
            self._trial = Context().run(asyncio.ensure_future, self._try())

    async def _try(self) -> None:
        timeout_s = min(TRIAL_TIMEOUT_S, self.config.timeout)
        passed = False
        try:
            await asyncio.wait_for(self._ask_little(), timeout_s)
            passed = True
        except Exception as error:  # noqa: BLE001 - as many kinds as ways to be down
            self._note_failure(error)
        finally:
            self.circuit.end_trial(passed=passed)

    async def close(self) -> None:
        """Stop a trial that is under way; may be called twice."""
        if self._trial is not None:
            self._trial.cancel()
            await asyncio.gather(self._trial, return_exceptions=True)
            self._trial = None

    def lose(self, reason: str) -> None:
        """Leave out a server that has gone, and give up what hangs there."""
        self.circuit.open(reason)
        for request in self._under_way:
            request.cancel()

    def _note_failure(self, error: Exception) -> None:
        status, headers = _status_of(error)
        reason = describe(error, *secrets_of(self.config))
        asked_to_wait = headers.get("Retry-After")
        is_busy = status == UNAVAILABLE and asked_to_wait is not None
        if status == BUSY or is_busy:
            wait_s = retry_after_s(asked_to_wait, datetime.now(timezone.utc))
            wait = f"it asks to wait {wait_s:.0f} s; " if asked_to_wait else ""
            self.circuit.rest(wait_s, wait + reason)
        elif status not in ABOUT_THE_REQUEST:
            self.circuit.note_failure(reason)
        self.on_failure(self, error)

    async def _ask_once(
        self,
        places: Any,
        stat_dict: dict[str, Any],
        ask: Callable[..., Awaitable[Any]],
        arguments: dict[str, Any],
    ) -> Any:
        """Wait for a place and ask once.

        Raises:
            ServerLeftOutError: The server has been left out in the meantime.
        """
        async with places:
            if not self.circuit.admits:
                raise ServerLeftOutError(self.circuit.reason)
            stat_dict["start"] = time.time()
            stat_dict["attempts"] += 1
            reply = await self._unless_lost(ask(**arguments))
            stat_dict["end"] = time.time()
        return reply

    async def _unless_lost(self, asking: Awaitable[Any]) -> Any:
        request = asyncio.ensure_future(asking)
        self._under_way.add(request)
        try:
            await asyncio.wait({request})
        finally:
            self._under_way.discard(request)
            request.cancel()
        if request.cancelled():
            raise ServerLeftOutError(self.circuit.reason)
        try:
            reply = request.result()
            self._refuse_unusable(reply)
        except Exception as error:
            self._note_failure(error)
            raise
        self.has_answered = True
        self.circuit.note_answer()
        return reply

    # -- in place of the framework's three tries ---------------------------------------

    chat_completion = inspect.unwrap(APIServer.chat_completion)

    async def _chat_comp(self, stat_dict: dict[str, Any], **arguments: Any) -> Any:
        ask = self._chat_completion_wrapper
        return await self._ask_once(self.sem, stat_dict, ask, arguments)

    async def _chat_eval(self, stat_dict: dict[str, Any], **arguments: Any) -> Any:
        ask = self._chat_completion_wrapper
        return await self._ask_once(self.eval_sem, stat_dict, ask, arguments)

    async def _tokens_and_logprobs_comp(
        self, stat_dict: dict[str, Any], **arguments: Any
    ) -> Any:
        ask = self._tokens_and_logprobs_completion_wrapper
        return await self._ask_once(self.sem, stat_dict, ask, arguments)

    async def _tokens_and_logprobs_comp_eval(
        self, stat_dict: dict[str, Any], **arguments: Any
    ) -> Any:
        ask = self._tokens_and_logprobs_completion_wrapper
        return await self._ask_once(self.eval_sem, stat_dict, ask, arguments)
