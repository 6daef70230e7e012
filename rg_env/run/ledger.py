"""How rollouts end, and how many ended so."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any


class Ending(str, enum.Enum):
    """How a rollout ended: a word, and what it means."""

    meaning: str

    def __new__(cls, word: str, meaning: str) -> Ending:  # noqa: D102
        member = str.__new__(cls, word)
        member._value_ = word  # Enum itself would make the value of both
        member.meaning = meaning
        return member

    SENT = "sent", "sent to the trainer"
    WRITTEN = "written", "written to the file of rows"
    ZERO_VARIANCE = "zero_variance", "not sent: all scores of the group were equal"
    UNANSWERED = "unanswered", "no server gave a usable reply; the item is retried"
    UNSCORED = "unscored", "the workers gave no score; the item is retried"
    DISCARDED = "discarded", "not sent: a check or a hook rejected the group"
    UNSENT = "unsent", "the API did not accept the group; it is kept in a dump file"
    FAILED = "failed", "lost to an error, which is in the log"
    CANCELLED = "cancelled", "the group was cancelled, mostly at the end of the run"
    KILLED = "killed", "in flight at a kill of the process; counted by the next start"


class Ledger:
    """Counts the rollouts that were queried, and their outcomes by word.

    `keep` is told of the ledger, as plain values, at every change.
    """

    keep: Callable[[dict[str, Any]], None] | None = None

    def __init__(self) -> None:
        self.queried = 0
        self.outcomes: Counter[str] = Counter()

    @property
    def in_flight(self) -> int:
        """Rollouts queried that have no outcome yet."""
        return self.queried - sum(self.outcomes.values())

    def query(self, rollouts: int) -> None:
        """Count rollouts that are being queried."""
        if rollouts:
            self.queried += rollouts
            self.tell()

    def settle(self, ending: Ending, rollouts: int) -> None:
        """Count how rollouts that were queried have ended."""
        if rollouts:
            self.outcomes[ending.value] += rollouts
            self.tell()

    def tell(self) -> None:
        """Tell the ledger to the one who keeps it."""
        if self.keep is not None:
            self.keep({"queried": self.queried, "outcomes": dict(self.outcomes)})

    def __str__(self) -> str:  # the line of the log
        outcomes = ", ".join(f"{n} {word}" for word, n in self.outcomes.most_common())
        return f"{self.queried} rollouts queried ({outcomes or 'none back yet'})"

    def state_dict(self) -> dict[str, Any]:
        """Return the ledger as plain values, without what is in flight."""
        known = self.queried - self.in_flight
        return {"queried": known, "outcomes": dict(self.outcomes)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue a ledger; ValueError, and no change, if it has another form."""
        try:
            queried = int(state["queried"])
            outcomes = Counter({word: int(n) for word, n in state["outcomes"].items()})
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            names = "`queried` and `outcomes`"
            raise ValueError(f"the ledger needs {names} ({error!r})") from error
        self.queried, self.outcomes = queried, outcomes
        self.tell()
