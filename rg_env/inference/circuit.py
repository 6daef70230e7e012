"""Whether a server is queried: the circuit of each, opened by failures in a row.

Mends B22 of docs/host_defects.md. The framework's `ServerManager` chooses the server
with the most free places among those whose `server_healthy` is true; here that is what
the circuit says. Left alone it would send nearly everything to a server that fails at
once, because its places are always free, and would wait for a dead one for ever.
"""

from __future__ import annotations

import email.utils
import random
import time
from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from typing import Any

from rg_env import patience
from rg_env.inference.request_failures import ABOUT_THE_REQUEST

TOO_MANY_REQUESTS, UNAVAILABLE = 429, 503


class ServerLeftOutError(ConnectionError):
    """The server is not queried now; another may be."""


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
    """Return why none of some servers is queried now, None where one is."""
    servers = list(servers)
    if any(getattr(server, "server_healthy", True) for server in servers):
        return None
    circuit = getattr(servers[0], "circuit", None)
    return "the health check fails" if circuit is None else circuit.reason


class Circuit:
    """Whether one server is queried: left out, probed, taken back.

    closed --failures in a row--> open --its pause is over--> a probe --passed--> closed
                                   ^-------- failed: twice the pause ----'

    A server that passed its probe and fails as often again is left out for a longer
    pause; a real answer forgets all that. One failure is not enough there either: it
    may be of the one item left, whose every request fails. A server that says it is
    busy rests, which is no failure.

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
        self._opened_at = self._probe_at = self._rests_until = clock()
        self._is_probing = False
        self.is_open = False
        self.reason = ""
        self.on_change: Callable[[], None] = lambda: None

    @property
    def admits(self) -> bool:
        """Whether the server is to be queried now."""
        return not self.is_open and self._clock() >= self._rests_until

    @property
    def is_resting(self) -> bool:
        """Whether the server is left alone because it wants that."""
        return not self.admits and not self.is_open

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

    def note_error(self, error: Exception, described: str) -> None:
        """A request failed so; one that is about the request says nothing here."""
        status = getattr(error, "status", None)
        rest = (getattr(error, "headers", None) or {}).get("Retry-After")
        if status == TOO_MANY_REQUESTS or (status == UNAVAILABLE and rest is not None):
            wait_s = retry_after_s(rest, datetime.now(timezone.utc))
            wait = f"it asks to wait {wait_s:.0f} s; " if rest else ""
            self.rest(wait_s, wait + described)
        elif status not in ABOUT_THE_REQUEST:
            self.note_failure(described)

    def open(self, reason: str) -> None:
        """Leave the server out from now on."""
        if self.is_open:
            return
        self.reason = reason
        self.is_open = True
        self._opened_at = self._clock()
        self._put_off_probe()
        self.on_change()

    def rest(self, seconds: float, reason: str) -> None:
        """Do not query the server for some time, which is bounded."""
        until = self._clock() + min(max(seconds, 0.0), patience.BUSY_LONGEST_REST_S)
        self._rests_until = max(self._rests_until, until)
        self.reason = reason

    def hasten_probe(self) -> None:
        """Probe the server soon, since there is a sign that it is there again."""
        self._probe_at = self._clock()
        self._pause_s = patience.CIRCUIT_FIRST_PAUSE_S

    def begin_probe(self) -> bool:
        """Say whether to probe the server now; only one probe runs at a time."""
        due = max(self._probe_at, self._rests_until)
        if not self.is_open or self._is_probing or self._clock() < due:
            return False
        self._is_probing = True
        return True

    def end_probe(self, *, passed: bool) -> None:
        """A probe is over."""
        self._is_probing = False
        if passed and self.is_open:
            self._failures = 0
            self._close()
        else:
            self._put_off_probe()

    def _put_off_probe(self) -> None:
        # Several environments must not probe a server that starts at one moment.
        jitter = 0.75 + 0.5 * self._chance()
        self._probe_at = self._clock() + self._pause_s * jitter
        self._pause_s = min(2 * self._pause_s, patience.CIRCUIT_LONGEST_PAUSE_S)

    def _close(self) -> None:
        if self.is_open:
            self.is_open = False
            self.on_change()
