"""How every rollout that was queried has ended.

A rollout ends in exactly one way, so that those queried are the sum of the endings and
of those in flight. `Ledger.settle` counts them, and nothing else does. Pure: whoever
keeps the ledger on disk is given.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any


class Ending(str, enum.Enum):
    """How a rollout ended: a word, and what it means.

    Log, metrics, `ledger.json`, demo and docs/metrics_and_logs.md have both from here.
    """

    meaning: str

    def __new__(cls, word: str, meaning: str) -> Ending:
        """Return a member; its value is the word."""
        member = str.__new__(cls, word)
        # Enum itself would make the value of both.
        member._value_ = word
        member.meaning = meaning
        return member

    SENT = "sent", "sent to the trainer"
    WRITTEN = "written", "written to the file of rows"
    ZERO_VARIANCE = "zero_variance", "not sent: all scores of the group were equal"
    UNANSWERED = (
        "unanswered",
        "the inference server gave no usable reply; the item is tried again",
    )
    UNSCORED = "unscored", "the workers gave no score; the item is tried again"
    DISCARDED = "discarded", "not sent: a check or a hook rejected the group"
    UNSENT = "unsent", "the API did not accept the group; it is kept in a dump file"
    FAILED = "failed", "lost to an error, which is in the log"
    CANCELLED = (
        "cancelled",
        "the group was cancelled, for example at the end of the run",
    )
    KILLED = (
        "killed",
        "in flight when the process was killed; counted by the next start",
    )


RENAMED = {"refused_by_api": Ending.DISCARDED.value}
"""Words of older ledgers and checkpoints to those that they are now."""


class Ledger:
    """Counts the rollouts that were queried and their endings.

    Args:
        keep: Told of the ledger, as plain values, at every change.

    Attributes:
        queried: Rollouts that were queried.
        outcomes: Number of rollouts by the word of their ending.
    """

    def __init__(self, keep: Callable[[dict[str, Any]], None] | None = None) -> None:
        self._keep = keep
        self.queried = 0
        self.outcomes: Counter[str] = Counter()

    @property
    def in_flight(self) -> int:
        """Rollouts queried that have no outcome yet."""
        return self.queried - sum(self.outcomes.values())

    def query(self, rollouts: int) -> None:
        """Count rollouts that are being queried."""
        self.queried += rollouts
        self.tell()

    def settle(self, ending: Ending, rollouts: int) -> None:
        """Count how rollouts that were queried have ended."""
        if rollouts:
            self.outcomes[ending.value] += rollouts
            self.tell()

    def tell(self) -> None:
        """Tell the ledger to the one who keeps it."""
        if self._keep is not None:
            self._keep({"queried": self.queried, "outcomes": dict(self.outcomes)})

    def __str__(self) -> str:
        """Return the line of the log."""
        outcomes = ", ".join(
            f"{n} {outcome}" for outcome, n in self.outcomes.most_common()
        )
        return f"{self.queried} rollouts queried ({outcomes or 'none back yet'})"

    def scalars(self) -> dict[str, float]:
        """Return the totals for W&B."""
        outcomes = {
            f"ledger/{outcome}": float(n) for outcome, n in self.outcomes.items()
        }
        return {"ledger/rollouts_queried": self.queried, **outcomes}

    def state_dict(self) -> dict[str, Any]:
        """Return the ledger as plain values, without what is in flight."""
        return {
            "queried": self.queried - self.in_flight,
            "outcomes": dict(self.outcomes),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue a ledger; ValueError, and no change, if it has another form."""
        try:
            queried = int(state["queried"])
            outcomes: Counter[str] = Counter()
            for word, n in state["outcomes"].items():
                outcomes[RENAMED.get(word, word)] += int(n)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"the ledger needs `queried` and `outcomes` ({error!r})"
            ) from error
        self.queried, self.outcomes = queried, outcomes
        self.tell()
