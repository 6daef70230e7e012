"""The outcome of every rollout that was queried.

A rollout ends in exactly one outcome:

    sent            the API took its group
    written         `process` wrote its group
    zero_variance   the scores of its group are equal, so it teaches nothing
    unanswered      the inference server gave no usable reply
    unscored        the worker pool gave no scores
    refused_by_api  a check before the API, a hook or the API turned its group away
    unsent          the API did not take its group, which is in a dump file
    failed          an error of ours, in the log with its traceback
    cancelled       its group was cancelled, at the end of the run for example
    killed          its process was killed before it had another outcome

so that those queried are the sum of the outcomes and of those in flight. Collection and
delivery return what they decide as an `Ending`; that, what a hook drops, and what a
killed process left go through `Ledger.settle`, and nothing else counts. Pure: whoever
keeps the ledger on disk is given.
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
        self.asked = 0
        self.outcomes: Counter[RolloutOutcome] = Counter()

    @property
    def in_flight(self) -> int:
        """Rollouts queried that have no outcome yet."""
        return self.asked - sum(self.outcomes.values())

    def ask(self, rollouts: int) -> None:
        """Count rollouts that are being queried."""
        self.asked += rollouts
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
            self._keep({"asked": self.asked, "outcomes": dict(self.outcomes)})

    def __str__(self) -> str:
        """Return the line of the log."""
        outcomes = ", ".join(
            f"{n} {outcome}" for outcome, n in self.outcomes.most_common()
        )
        return f"{self.asked} rollouts queried ({outcomes or 'none back yet'})"

    def scalars(self) -> dict[str, float]:
        """Return the totals for W&B."""
        outcomes = {
            f"ledger/{outcome}": float(n) for outcome, n in self.outcomes.items()
        }
        return {"ledger/rollouts_queried": self.asked, **outcomes}

    def state_dict(self) -> dict[str, Any]:
        """Return the ledger as plain values, without what is in flight."""
        return {"asked": self.asked - self.in_flight, "outcomes": dict(self.outcomes)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue a ledger; ValueError, and no change, if it has another form."""
        try:
            asked = int(state["asked"])
            outcomes = Counter({name: int(n) for name, n in state["outcomes"].items()})
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"the ledger needs `asked` and `outcomes` ({error!r})"
            ) from error
        self.asked, self.outcomes = asked, outcomes
        self.tell()
