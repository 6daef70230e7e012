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

import abc
import asyncio
import email.utils
import inspect
import random
import time
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timezone
from typing import Any, TypeVar

from atroposlib.envs.server_handling.server_baseline import APIServer

from rg_env import patience
from rg_env.inference.extras import secrets_of
from rg_env.inference.refusals import ABOUT_THE_REQUEST, describe

T = TypeVar("T")

TOO_MANY_REQUESTS = 429
UNAVAILABLE = 503


class ServerLeftOutError(ConnectionError):
    """The server is not asked now; another may be."""


def retry_after_s(header: str | None, now: datetime) -> float:
    """Return for how long a server wants to rest: seconds or a date, as HTTP has it."""
    if header is None:
        return patience.BUSY_REST_S
    if header.strip().isdecimal():
        return float(header)
    try:
        until = email.utils.parsedate_to_datetime(header)
    except ValueError:
        return patience.BUSY_REST_S
    if until.tzinfo is None:  # "-0000"
        until = until.replace(tzinfo=timezone.utc)
    return (until - now).total_seconds()


def why_all_out(servers: Iterable[Any]) -> str | None:
    """Return why none of some servers is asked now, None where one is."""
    reasons = []
    for server in servers:
        if getattr(server, "server_healthy", True):
            return None
        reasons.append(getattr(server, "why_out", "the health check fails"))
    return reasons[0]


def _pass(*_: object) -> None:
    pass


class Circuit:
    """Whether one server is asked: left out, tried, taken back.

    closed --failures in a row--> open --its pause is over--> a trial --passed--> closed
                                   ^-------- failed: twice the pause ----'

    A server that passed its trial and fails as often again is left out for a longer
    pause; a real answer forgets all that. One failure is not enough there either: it
    may be of the one item left to ask, whose every request fails. A server that says it
    is busy rests, which is no failure.

    Args:
        clock: Seconds, never going back.
        chance: Returns a number in [0, 1), for the jitter of the pauses.

    Attributes:
        is_open: Whether the server is left out.
        reason: The newest failure, or why it rests.
        on_change: Called after it opened and after it closed.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._clock = clock
        self._chance = chance
        self._failures = 0
        self._pause_s = patience.CIRCUIT_FIRST_PAUSE_S
        self._opened_at = self._trial_at = self._rests_until = clock()
        self._is_trying = False
        self.is_open = False
        self.reason = ""
        self.on_change: Callable[[], None] = lambda: None

    @property
    def admits(self) -> bool:
        """Whether the server is to be asked now."""
        return not self.is_open and self._clock() >= self._rests_until

    @property
    def open_s(self) -> float:
        """For how long it has been open, or was the last time that it closed."""
        return self._clock() - self._opened_at

    def note_answer(self) -> None:
        """A request was answered, perhaps one from before it opened."""
        self._failures = 0
        self._pause_s = patience.CIRCUIT_FIRST_PAUSE_S
        self._close()

    def note_failure(self, reason: str) -> None:
        """A request failed."""
        self._failures += 1
        self.reason = reason
        if self._failures >= patience.CIRCUIT_FAILURES_IN_A_ROW:
            self.open(reason)

    def open(self, reason: str) -> None:
        """Leave the server out from now on."""
        if self.is_open:
            return
        self.reason = reason
        self.is_open = True
        self._opened_at = self._clock()
        self._put_off_trial()
        self.on_change()

    def rest(self, seconds: float, reason: str) -> None:
        """Do not ask the server for some time, which is bounded."""
        until = self._clock() + min(max(seconds, 0.0), patience.BUSY_LONGEST_REST_S)
        self._rests_until = max(self._rests_until, until)
        self.reason = reason

    def hasten_trial(self) -> None:
        """Try the server soon, since there is a sign that it is there again."""
        self._trial_at = self._clock()
        self._pause_s = patience.CIRCUIT_FIRST_PAUSE_S

    def begin_trial(self) -> bool:
        """Say whether to try the server now; only one trial runs at a time."""
        due = max(self._trial_at, self._rests_until)
        if not self.is_open or self._is_trying or self._clock() < due:
            return False
        self._is_trying = True
        return True

    def end_trial(self, *, passed: bool) -> None:
        """A trial is over."""
        self._is_trying = False
        if passed and self.is_open:
            self._failures = 0
            self._close()
        else:
            self._put_off_trial()

    def _put_off_trial(self) -> None:
        # Several environments must not try a server that starts at one moment.
        jitter = 0.75 + 0.5 * self._chance()
        self._trial_at = self._clock() + self._pause_s * jitter
        self._pause_s = min(2 * self._pause_s, patience.CIRCUIT_LONGEST_PAUSE_S)

    def _close(self) -> None:
        if self.is_open:
            self.is_open = False
            self.on_change()


class CircuitClient(APIServer):
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
        self.on_failure: Callable[[CircuitClient, Exception], None] = _pass
        self.has_answered = False
        super().__init__(*args, **kwargs)

    @property
    def server_healthy(self) -> bool:
        """Whether the framework is to choose this server; it cannot say so itself."""
        return self.circuit.admits

    @server_healthy.setter
    def server_healthy(self, is_healthy: bool) -> None:
        pass

    @property
    def why_out(self) -> str | None:
        """Why the server is not asked now, None where it is."""
        return None if self.circuit.admits else self.circuit.reason

    @property
    def is_resting(self) -> bool:
        """Whether the server is left alone because it asked for that."""
        return not self.circuit.admits and not self.circuit.is_open

    @abc.abstractmethod
    async def try_again(self) -> None:
        """Ask for little, which costs next to nothing; raises where it fails."""

    @abc.abstractmethod
    def refuse_unusable(self, reply: Any) -> None:
        """Raise where a reply is of no use at all."""

    def describe(self, error: BaseException) -> str:
        """Return an error's name and what it means, without key and headers."""
        return describe(error, *secrets_of(self.config))

    # -- failures and trials -----------------------------------------------------------

    def note_failure(self, error: Exception) -> None:
        """A request failed."""
        status = getattr(error, "status", None)
        asked_to_rest = (getattr(error, "headers", None) or {}).get("Retry-After")
        is_busy = status == UNAVAILABLE and asked_to_rest is not None
        if status == TOO_MANY_REQUESTS or is_busy:
            wait_s = retry_after_s(asked_to_rest, datetime.now(timezone.utc))
            wait = f"it asks to wait {wait_s:.0f} s; " if asked_to_rest else ""
            self.circuit.rest(wait_s, wait + self.describe(error))
        elif status not in ABOUT_THE_REQUEST:
            self.circuit.note_failure(self.describe(error))
        self.on_failure(self, error)

    def lose(self, reason: str) -> None:
        """Leave out a server that has gone, and give up what hangs there."""
        self.circuit.open(reason)
        for request in self._under_way:
            request.cancel()

    def try_if_due(self) -> None:
        """Begin to try a server that is left out, if its pause is over."""
        if self.circuit.begin_trial():
            self._trial = asyncio.ensure_future(self._try())

    async def _try(self) -> None:
        passed = False
        try:
            await asyncio.wait_for(self.try_again(), patience.PROBE_WITHIN_S)
            passed = True
        except Exception as error:  # noqa: BLE001 - as many kinds as ways to be down
            self.note_failure(error)
        finally:
            self.circuit.end_trial(passed=passed)

    async def close(self) -> None:
        """Stop a trial that is under way; may be called twice."""
        if self._trial is not None:
            self._trial.cancel()
            await asyncio.gather(self._trial, return_exceptions=True)
            self._trial = None

    # -- in place of the framework's three tries ---------------------------------------

    async def unless_lost(
        self, asking: Awaitable[T], check: Callable[[T], None] = _pass
    ) -> T:
        """Return what asking the server comes to, and note where it fails.

        Args:
            asking: Is cancelled when the server is lost.
            check: Raises where a reply is of no use.

        Raises:
            ServerLeftOutError: The server is lost.
        """
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
            check(reply)
        except Exception as error:
            self.note_failure(error)
            raise
        return reply

    async def _ask_once(
        self, places: Any, stats: dict[str, Any], asking: Callable[[], Awaitable[Any]]
    ) -> Any:
        """Wait for a place and ask once."""
        async with places:
            if not self.circuit.admits:
                raise ServerLeftOutError(self.circuit.reason)
            stats["start"] = time.time()
            stats["attempts"] += 1
            reply = await self.unless_lost(asking(), self.refuse_unusable)
            stats["end"] = time.time()
        self.has_answered = True
        self.circuit.note_answer()
        return reply

    chat_completion = inspect.unwrap(APIServer.chat_completion)

    async def _chat_comp(self, stat_dict: dict[str, Any], **asked: Any) -> Any:
        return await self._ask_once(
            self.sem, stat_dict, lambda: self._chat_completion_wrapper(**asked)
        )

    async def _chat_eval(self, stat_dict: dict[str, Any], **asked: Any) -> Any:
        return await self._ask_once(
            self.eval_sem, stat_dict, lambda: self._chat_completion_wrapper(**asked)
        )

    async def _tokens_and_logprobs_comp(
        self, stat_dict: dict[str, Any], **asked: Any
    ) -> Any:
        ask = self._tokens_and_logprobs_completion_wrapper
        return await self._ask_once(self.sem, stat_dict, lambda: ask(**asked))

    async def _tokens_and_logprobs_comp_eval(
        self, stat_dict: dict[str, Any], **asked: Any
    ) -> Any:
        ask = self._tokens_and_logprobs_completion_wrapper
        return await self._ask_once(self.eval_sem, stat_dict, lambda: ask(**asked))
