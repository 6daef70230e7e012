"""The ledger of rollouts: how many were queried, and how each of them ended."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import msgspec


class Ending(str, enum.Enum):
    """How a rollout ended, as docs/metrics_and_logs.md lists it."""

    SENT = "sent"
    WRITTEN = "written"
    ZERO_VARIANCE = "zero_variance"
    UNANSWERED = "unanswered"
    UNSCORED = "unscored"
    DISCARDED = "discarded"
    UNSENT = "unsent"
    FAILED = "failed"
    CANCELLED = "cancelled"
    KILLED = "killed"  # in flight when the process was killed; the next one counts them


DELIVERED = frozenset({Ending.SENT, Ending.WRITTEN, Ending.UNSENT})
"""Endings of rollouts that reached the trainer or the disk, as unsent ones do."""


class _LedgerState(msgspec.Struct):
    queried: int
    outcomes: dict[str, int]


class Ledger:
    """Counts the rollouts that were queried, and those that have ended, by ending.

    `on_change` is called with the ledger, as plain values, at every change.
    """

    def __init__(self) -> None:
        self.queried = 0
        self.endings: Counter[str] = Counter()
        self.on_change: Callable[[dict[str, Any]], object] = lambda ledger: None

    @property
    def in_flight(self) -> int:
        """Number of queried rollouts that have not ended."""
        return self.queried - self.endings.total()

    def query(self, rollouts: int) -> None:
        """Count rollouts that are being queried."""
        if rollouts:
            self.queried += rollouts
            self.notify()

    def settle(self, ending: Ending, rollouts: int) -> None:
        """Count queried rollouts that have ended."""
        if rollouts:
            self.endings[ending.value] += rollouts
            self.notify()

    def notify(self) -> None:
        """Call `on_change`."""
        self.on_change({"queried": self.queried, "outcomes": dict(self.endings)})

    def __str__(self) -> str:  # the line of the log
        endings = ", ".join(f"{n} {word}" for word, n in self.endings.most_common())
        return f"{self.queried} rollouts queried ({endings or 'none back yet'})"

    def state_dict(self) -> dict[str, Any]:
        """Return the ledger as plain values, without rollouts in flight."""
        return {"queried": self.endings.total(), "outcomes": dict(self.endings)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state; an invalid one raises ValueError, with no change."""
        new = msgspec.convert(state, _LedgerState)
        self.queried = new.queried
        self.endings = Counter(new.outcomes)
        self.notify()
