"""Counts of what happened to the rollouts, and the numbers for W&B and the log."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

from rg_env.rollouts.group_record import GroupRecord
from rg_env.rollouts.ledger import Ledger

TROUBLE = frozenset({"refused", "timeout", "scorer_error"})
"""Outcomes that say something of the scorer as well as of the answer."""


@dataclasses.dataclass
class TaskTally:
    """Sums over the rollouts of one task.

    Attributes:
        groups: Groups scored.
        rollouts: Rollouts scored.
        score_sum: Sum of their scores.
    """

    groups: int = 0
    rollouts: int = 0
    score_sum: float = 0.0

    @property
    def mean_score(self) -> float:
        """Mean score of the task's rollouts, in [0, 1]; 0 before the first."""
        return self.score_sum / self.rollouts if self.rollouts else 0.0


class Metrics:
    """Counters of one run.

    Args:
        ledger: What became of its rollouts.

    Attributes:
        ledger: As given.
        outcomes: Number of rollouts by outcome.
        task_outcomes: The same by (task, outcome).
        tasks: Sums by task.
        events: Other things worth counting (retries, prompts too long), by name.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.outcomes: Counter[str] = Counter()
        self.task_outcomes: Counter[tuple[str, str]] = Counter()
        self.tasks: dict[str, TaskTally] = {}
        self.events: Counter[str] = Counter()
        self._outcomes_logged: Counter[str] = Counter()

    def record_group(self, group: GroupRecord) -> None:
        """Count the rollouts of one scored group."""
        tally = self.tasks.setdefault(group.task, TaskTally())
        tally.groups += 1
        for rollout in group.rollouts:
            tally.rollouts += 1
            tally.score_sum += rollout.score
            self.outcomes[rollout.outcome] += 1
            self.task_outcomes[group.task, rollout.outcome] += 1

    @property
    def mean_score(self) -> float:
        """Mean score of all rollouts scored, in [0, 1]; 0 before the first."""
        rollouts = sum(self.outcomes.values())
        total = sum(tally.score_sum for tally in self.tasks.values())
        return total / rollouts if rollouts else 0.0

    def task_table(self) -> tuple[list[str], list[list[Any]]]:
        """Return columns and rows of a table: a row a task, its outcomes counted."""
        outcomes = sorted(self.outcomes)
        rows = [
            [task, tally.groups, tally.mean_score]
            + [self.task_outcomes[task, outcome] for outcome in outcomes]
            for task, tally in sorted(self.tasks.items())
        ]
        return ["task", "groups", "mean score", *outcomes], rows

    def new_warnings(self, group: GroupRecord) -> list[str]:
        """Return what the newest group's scorer trouble is worth saying.

        A task's first refused answer, missed deadline or scorer error is; so are its
        second, fourth, eighth and so on, which keeps a log of days readable.
        """
        worth_saying = []
        for outcome in sorted({r.outcome for r in group.rollouts} & TROUBLE):
            now = self.task_outcomes[group.task, outcome]
            new = sum(r.outcome == outcome for r in group.rollouts)
            if now.bit_length() > (now - new).bit_length():
                worth_saying.append(f"{group.task}: outcome {outcome}, {now} so far")
        return worth_saying

    def wandb_scalars(self) -> dict[str, float]:
        """Return the ledger's totals and the outcomes' shares since the last call."""
        scalars = self.ledger.scalars()
        scalars.update({f"events/{name}": n for name, n in self.events.items()})
        new = self.outcomes - self._outcomes_logged
        total = sum(new.values())
        scalars.update({f"outcomes/{name}": n / total for name, n in new.items()})
        self._outcomes_logged = self.outcomes.copy()
        return scalars

    def summary(self) -> str:
        """Return one line for the log: scores, fates, outcomes."""
        scored = sum(self.outcomes.values())
        outcomes = ", ".join(
            f"{name} {n / scored:.0%}" for name, n in self.outcomes.most_common()
        )
        return (
            f"{self.ledger}, mean score {self.mean_score:.3f}"
            f" ({outcomes or 'none scored yet'})"
        )
