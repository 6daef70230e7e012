"""Whether one inference server is asked: left out, tried, taken back.

    closed --failures in a row--> open --its pause is over--> a trial --passed--> closed
                                   ^-------- failed: twice the pause ----'

A server that passed its trial and fails as often again is left out for a longer pause;
a real answer forgets all that. One failure is not enough there either: it may be of the
one item left to ask, whose every request fails. A server that says it is busy rests,
which is no failure. Pure: clock and chance are given.

Mends B22 of docs/host_defects.md.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from rg_env import patience


def _nobody() -> None:
    pass


class Circuit:
    """The state of one server.

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
        self.on_change: Callable[[], None] = _nobody

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
