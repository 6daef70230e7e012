"""The state of a server: in use, left out after failures in a row, or resting.

Mends B22 of docs/host_defects.md: the framework sends nearly all requests to a server
that fails immediately, because such a server always has free places, and waits forever
for a dead one.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from rg_env import patience
from rg_env.inference.request_failures import ABOUT_THE_REQUEST, NO_SERVER, Failure


class ServerState:
    """Whether one server is there, and is queried.

    A single failure leaves no server out, because one item may be the reason. If a
    server passes its probe and then fails as often as before, the next pause is longer;
    a real answer resets this.

    Attributes:
        is_out: Whether the server is left out.
        has_answered: Whether a request was ever answered with something of use.
        failure: The newest; it says why the server is left out, or rests.
        on_change: Called after it was left out, and after it was taken back.
    """

    clock = staticmethod(time.monotonic)

    def __init__(self) -> None:
        self._failures = 0
        self._pause_s = patience.CIRCUIT_FIRST_PAUSE_S
        self._out_since = self._rests_until = self.clock()
        self.is_out = self.has_answered = False
        self.failure = NO_SERVER
        self.on_change: Callable[[], None] = lambda: None

    @property
    def is_resting(self) -> bool:
        """Whether the server is there, and left alone because it wants that."""
        return not self.is_out and self.clock() < self._rests_until

    @property
    def admits(self) -> bool:
        """Whether the server is to be queried now."""
        return not self.is_out and not self.is_resting

    @property
    def out_s(self) -> float:
        """For how long it has been left out, or was the last time."""
        return self.clock() - self._out_since

    def note_answer(self) -> None:
        """A request was answered, perhaps one from before it was left out."""
        self.has_answered = True
        self._pause_s = patience.CIRCUIT_FIRST_PAUSE_S
        self.take_back()

    def note_failure(self, failure: Failure) -> None:
        """Note a failed request, unless the request itself was at fault."""
        self.failure = failure
        if failure.rest_s is not None:
            rest_s = min(max(failure.rest_s, 0.0), patience.BUSY_LONGEST_REST_S)
            self._rests_until = max(self._rests_until, self.clock() + rest_s)
        elif failure.status not in ABOUT_THE_REQUEST:
            self._failures += 1
            if self._failures >= patience.CIRCUIT_FAILURES_IN_A_ROW:
                self.leave_out(failure)

    def leave_out(self, failure: Failure) -> None:
        """Leave the server out from now on."""
        if not self.is_out:
            self.failure, self.is_out, self._out_since = failure, True, self.clock()
            self.on_change()

    def take_back(self) -> None:
        """Use the server again."""
        self._failures = 0
        if self.is_out:
            self.is_out = False
            self.on_change()

    def next_pause_s(self) -> float:
        """Return how long to wait for the next probe, each time twice as long."""
        pause_s = self._pause_s
        self._pause_s = min(2 * pause_s, patience.CIRCUIT_LONGEST_PAUSE_S)
        # With jitter: many environments may wait for one server that starts.
        jitter = random.uniform(0.75, 1.25)
        return max(pause_s * jitter, self._rests_until - self.clock())
