"""The state of a server: not used after failures in a row, probed, used again.

Mends B22 of docs/host_defects.md. The framework's `ServerManager` chooses the server
with the most free places among those whose `server_healthy` is true; here, this state
decides that value. Otherwise the framework would send nearly all requests to a server
that fails immediately, because such a server always has free slots, and would wait
forever for a dead one.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from rg_env import patience
from rg_env.inference.request_failures import ABOUT_THE_REQUEST, NOTHING, Failure

NOT_ANSWERED = Failure("NoServerError", "no request is answered", NOTHING)


class ServerLeftOutError(ConnectionError):
    """The server is not queried now; another may be."""


class ServerState:
    """Whether one server is there, and is queried.

    queried --failures in a row--> left out --its pause is over--> a probe --passed-.
       ^                              ^------ failed: twice the pause ----'         |
       '----------------------------------------------------------------------------'

    If a server passes its probe and then fails as often as before, the next pause is
    longer; a real answer resets this. A single failure is not enough, because it may be
    caused by one item whose requests always fail. A server that reports that it is busy
    gets a rest, which does not count as a failure. At the start, one failed probe is
    enough to stop using a server.

    Args:
        clock: Seconds, never going back.
        chance: Returns a number in [0, 1), for the jitter of the pauses.

    Attributes:
        is_out: Whether the server is left out.
        is_awaited: Whether it is to be probed, though nothing failed yet.
        has_answered: Whether a request was ever answered with something of use.
        failure: The newest; it says why the server is left out, or rests.
        on_change: Called after it was left out, and after it was taken back.
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
        self._out_since = self._probe_at = self._rests_until = clock()
        self._is_probing = False
        self.is_out = self.is_awaited = self.has_answered = False
        self.failure = NOT_ANSWERED
        self.on_change: Callable[[], None] = lambda: None

    @property
    def admits(self) -> bool:
        """Whether the server is to be queried now."""
        return not self.is_out and self.rest_left_s <= 0

    @property
    def rest_left_s(self) -> float:
        """Seconds for which the server wants to be left alone; 0 or less for none."""
        return self._rests_until - self._clock()

    @property
    def is_resting(self) -> bool:
        """Whether the server is there, and left alone because it wants that."""
        return not self.is_out and self.rest_left_s > 0

    @property
    def out_s(self) -> float:
        """For how long it has been left out, or was the last time."""
        return self._clock() - self._out_since

    def note_answer(self) -> None:
        """A request was answered, perhaps one from before it was left out."""
        self.has_answered = True
        self._pause_s = patience.CIRCUIT_FIRST_PAUSE_S
        self._take_back()

    def note_failure(self, failure: Failure) -> None:
        """Note a failed request, unless the request itself was at fault."""
        self.failure = failure
        if failure.rest_s is not None:
            rest_s = min(max(failure.rest_s, 0.0), patience.BUSY_LONGEST_REST_S)
            self._rests_until = max(self._rests_until, self._clock() + rest_s)
        elif failure.status not in ABOUT_THE_REQUEST:
            self._failures += 1
            if self._failures >= patience.CIRCUIT_FAILURES_IN_A_ROW:
                self.leave_out(failure)

    def leave_out(self, failure: Failure) -> None:
        """Leave the server out from now on."""
        if not self.is_out:
            self.failure = failure
            self.is_out = True
            self._out_since = self._clock()
            self._put_off_probe()
            self.on_change()

    def probe_soon(self) -> None:
        """Probe the server soon, since there is a sign that it is there again."""
        self._probe_at = self._clock()
        self._pause_s = patience.CIRCUIT_FIRST_PAUSE_S

    def begin_probe(self) -> bool:
        """Say whether to probe the server now; only one probe runs at a time."""
        is_due = self._clock() >= max(self._probe_at, self._rests_until)
        is_wanted = self.is_out or self.is_awaited
        if not is_due or not is_wanted or self._is_probing:
            return False
        self._is_probing = True
        return True

    def end_probe(self, *, passed: bool) -> None:
        """A probe is over."""
        self._is_probing = False
        if passed:
            self._take_back()
        elif self.is_awaited and not self.is_out and self.rest_left_s <= 0:
            self.leave_out(self.failure)
        else:
            self._put_off_probe()

    def _put_off_probe(self) -> None:
        # With jitter: many environments may wait for one server that starts.
        jitter = 0.75 + 0.5 * self._chance()
        self._probe_at = self._clock() + self._pause_s * jitter
        longest_s = patience.CIRCUIT_LONGEST_PAUSE_S
        if self.is_awaited:
            longest_s = patience.PROBE_LONGEST_PAUSE_S
        self._pause_s = min(2 * self._pause_s, longest_s)

    def _take_back(self) -> None:
        self._failures = 0
        self.is_awaited = False
        if self.is_out:
            self.is_out = False
            self.on_change()
