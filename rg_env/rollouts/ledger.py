"""The outcome of every rollout that was queried.

A rollout ends in exactly one outcome (`ENDINGS` in rg_env/reports/outcome_words.py says
what each means), so that those queried are the sum of the outcomes and of those in
flight. Collection and delivery return what they decide as an `Ending`; that, what a
hook drops, and what a killed process left go through `Ledger.settle`, and nothing else
counts. Pure: whoever keeps the ledger on disk is given.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Literal

RolloutOutcome = Literal[
    "sent",
    "written",
    "zero_variance",
    "unanswered",
    "unscored",
    "refused_by_api",
    "unsent",
    "failed",
    "cancelled",
    "killed",
]


@dataclasses.dataclass(frozen=True)
class Ending:
    """The outcome of some rollouts, usually those of one group."""

    outcome: RolloutOutcome
    rollouts: int


class Ledger:
    """Counts the rollouts that were queried and their endings.

    Args:
        keep: Told of the ledger, as plain values, at every change.
    """

    def __init__(self, keep: Callable[[dict[str, Any]], None] | None = None) -> None:
        self._keep = keep
        self.queried = 0
        self.outcomes: Counter[RolloutOutcome] = Counter()

    @property
    def in_flight(self) -> int:
        """Rollouts queried that have no outcome yet."""
        return self.queried - sum(self.outcomes.values())

    def query(self, rollouts: int) -> None:
        """Count rollouts that are being queried."""
        self.queried += rollouts
        self.tell()

    def settle(self, *endings: Ending) -> None:
        """Count the outcomes of rollouts that were queried."""
        for ending in endings:
            self.outcomes[ending.outcome] += ending.rollouts
        if endings:
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
            outcomes = Counter({name: int(n) for name, n in state["outcomes"].items()})
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"the ledger needs `queried` and `outcomes` ({error!r})"
            ) from error
        self.queried, self.outcomes = queried, outcomes
        self.tell()
