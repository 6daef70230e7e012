"""A counted number of places that threads and event loops can wait for alike."""

from __future__ import annotations

import collections
import threading
from concurrent.futures import Future


class FairSemaphore:
    """A fair semaphore whose waiters are futures."""

    def __init__(self, number: int) -> None:
        self._lock = threading.Lock()
        self._free = number
        self._waiters: collections.deque[Future[None]] = collections.deque()

    def take(self) -> bool:
        """Take a place if one is free; False if not."""
        with self._lock:
            taken = self._free > 0
            self._free -= taken
        return taken

    def request(self) -> Future[None]:
        """Return a future that is done when it holds a place.

        Its owner either calls `give_back` after that, or `withdraw` at any time.
        """
        place: Future[None] = Future()
        with self._lock:
            if self._free == 0:
                self._waiters.append(place)
                return place
            self._free -= 1
        place.set_result(None)
        return place

    def withdraw(self, place: Future[None]) -> None:
        """Give up a requested place, granted or not."""
        if place.cancel():
            with self._lock:
                if place in self._waiters:
                    self._waiters.remove(place)
        elif place.exception() is None:
            self.give_back()

    def give_back(self) -> None:
        """Free a place, or hand it to who has waited longest."""
        while True:
            with self._lock:
                if not self._waiters:
                    self._free += 1
                    return
                place = self._waiters.popleft()
            # From here on it can no longer be cancelled under our hands.
            if place.set_running_or_notify_cancel():
                place.set_result(None)
                return

    def refuse(self, error: Exception) -> None:
        """Fail everyone who waits now."""
        with self._lock:
            waiters, self._waiters = self._waiters, collections.deque()
        for place in waiters:
            if place.set_running_or_notify_cancel():
                place.set_exception(error)
