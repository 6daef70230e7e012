"""What became of every rollout that was asked for.

A rollout ends in exactly one fate:

    sent            the API took its group
    written         `process` wrote its group
    no_signal       the scores of its group are equal, so it teaches nothing
    unanswered      the inference server gave no usable reply
    unscored        the worker pool gave no scores
    rejected        a check before the API, a hook or the API turned its group away
    unsent          the API did not take its group, which is in a dump file
    failed          an error of ours, in the log with its traceback
    cancelled       its group was cancelled, at the end of the run for example
    killed          its process was killed before it had another fate

so that asked = the sum of the fates + those in flight. Collection and
delivery return what they decide as an `Ending`; that, what a hook drops, and what a
killed process left go through `Ledger.settle`, and nothing else counts. Pure: whoever
keeps the ledger on disk is given.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Literal

Fate = Literal[
    "sent",
    "written",
    "no_signal",
    "unanswered",
    "unscored",
    "rejected",
    "unsent",
    "failed",
    "cancelled",
    "killed",
]


@dataclasses.dataclass(frozen=True)
class Ending:
    """What became of some rollouts, usually those of one group."""

    fate: Fate
    rollouts: int


class Ledger:
    """Counts the rollouts that were asked for and their endings.

    Args:
        keep: Told of the ledger, as plain values, at every change.

    Attributes:
        asked: Rollouts asked of the inference servers.
        fates: Number of rollouts by fate.
    """

    def __init__(self, keep: Callable[[dict[str, Any]], None] | None = None) -> None:
        self._keep = keep
        self.asked = 0
        self.fates: Counter[Fate] = Counter()

    @property
    def in_flight(self) -> int:
        """Rollouts asked for that have no fate yet."""
        return self.asked - sum(self.fates.values())

    def ask(self, rollouts: int) -> None:
        """Count rollouts that are being asked for."""
        self.asked += rollouts
        self.tell()

    def settle(self, *endings: Ending) -> None:
        """Count what became of rollouts that were asked for."""
        for ending in endings:
            self.fates[ending.fate] += ending.rollouts
        if endings:
            self.tell()

    def tell(self) -> None:
        """Tell the ledger to the one who keeps it."""
        if self._keep is not None:
            self._keep({"asked": self.asked, "fates": dict(self.fates)})

    def __str__(self) -> str:
        """Say in a few words what became of the rollouts."""
        fates = ", ".join(f"{n} {fate}" for fate, n in self.fates.most_common())
        return f"{self.asked} rollouts asked ({fates or 'none back yet'})"

    def scalars(self) -> dict[str, float]:
        """Return the totals for W&B."""
        fates = {f"ledger/{fate}": float(n) for fate, n in self.fates.items()}
        return {"ledger/rollouts_asked": self.asked, **fates}

    def state_dict(self) -> dict[str, Any]:
        """Return the ledger as plain values, without what is in flight."""
        return {"asked": self.asked - self.in_flight, "fates": dict(self.fates)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue a ledger.

        Raises:
            ValueError: A field is missing or has another form; nothing was changed.
        """
        try:
            asked = int(state["asked"])
            fates = Counter({name: int(n) for name, n in state["fates"].items()})
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"the ledger needs `asked` and `fates` ({error!r})"
            ) from error
        self.asked, self.fates = asked, fates
        self.tell()
