"""Counts of what happened to every rollout, and the numbers for W&B and the log.

A rollout that was asked for ends in exactly one fate:

    sent            the API took its group
    written         `process` wrote its group
    no_signal       the scores of its group are equal, so it teaches nothing
    unanswered      the inference server gave no usable reply
    unscored        the worker pool gave no scores
    rejected        the host or the API turned the group away
    unsent          the API did not take its group, which is in a dump file
    failed          an error of ours, in the log with its traceback
    cancelled       its group was cancelled, at the end of the run for example
    killed          its process was killed before it had another fate

so that asked = the sum of the fates + those in flight.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Literal

from rg_env.rollouts.group_record import GroupRecord

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

FORMAT_FAILURES = frozenset(
    {
        "no_answer",
        "several_answers",
        "nested_answer",
        "unclosed_answer",
        "stray_tag",
        "unfinished_thinking",
    }
)


TROUBLE = frozenset({"refused", "timeout", "scorer_error"})
"""Outcomes that say something of the scorer as well as of the answer."""


@dataclasses.dataclass
class TaskTally:
    """Sums over the rollouts of one task.

    Attributes:
        groups: Groups scored.
        rollouts: Rollouts scored.
        score_sum: Sum of their scores.
        format_failures: Rollouts without an answer.
    """

    groups: int = 0
    rollouts: int = 0
    score_sum: float = 0.0
    format_failures: int = 0

    @property
    def mean_score(self) -> float:
        """Mean score of the task's rollouts, in [0, 1]; 0 before the first."""
        return self.score_sum / self.rollouts if self.rollouts else 0.0


class Metrics:
    """Counters of one run.

    Args:
        keep: Told of the ledger, as plain values, at every change.

    Attributes:
        fates: What became of them; see the module.
        outcomes: Number of rollouts by outcome.
        task_outcomes: The same by (task, outcome).
        tasks: Sums by task.
        events: Other things worth counting (retries, prompts too long), by name.
    """

    def __init__(self, keep: Callable[[dict[str, Any]], None] | None = None) -> None:
        self._keep = keep
        self._asked = 0
        self.fates: Counter[Fate] = Counter()
        self.outcomes: Counter[str] = Counter()
        self.task_outcomes: Counter[tuple[str, str]] = Counter()
        self.tasks: dict[str, TaskTally] = {}
        self.events: Counter[str] = Counter()
        self._outcomes_logged: Counter[str] = Counter()

    @property
    def asked(self) -> int:
        """Rollouts asked of the inference server."""
        return self._asked

    @asked.setter
    def asked(self, asked: int) -> None:
        self._asked = asked
        self.tell()

    def tell(self) -> None:
        """Tell the ledger to the one who keeps it."""
        if self._keep is not None:
            self._keep({"asked": self._asked, "fates": dict(self.fates)})

    def record_group(self, group: GroupRecord) -> None:
        """Count the rollouts of one scored group."""
        tally = self.tasks.setdefault(group.task, TaskTally())
        tally.groups += 1
        for rollout in group.rollouts:
            tally.rollouts += 1
            tally.score_sum += rollout.score
            tally.format_failures += rollout.outcome in FORMAT_FAILURES
            self.outcomes[rollout.outcome] += 1
            self.task_outcomes[group.task, rollout.outcome] += 1

    def record_fate(self, fate: Fate, rollouts: int) -> None:
        """Count what became of rollouts that were asked for."""
        self.fates[fate] += rollouts
        self.tell()

    @property
    def in_flight(self) -> int:
        """Rollouts asked for that have no fate yet."""
        return self.asked - sum(self.fates.values())

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
        scalars: dict[str, float] = {"ledger/rollouts_asked": self.asked}
        scalars.update({f"ledger/{fate}": n for fate, n in self.fates.items()})
        scalars.update({f"events/{name}": n for name, n in self.events.items()})
        new = self.outcomes - self._outcomes_logged
        total = sum(new.values())
        scalars.update({f"outcomes/{name}": n / total for name, n in new.items()})
        self._outcomes_logged = self.outcomes.copy()
        return scalars

    def summary(self) -> str:
        """Return one line for the log: scores, fates, outcomes."""
        scored = sum(self.outcomes.values())
        fates = ", ".join(f"{n} {fate}" for fate, n in self.fates.most_common())
        outcomes = ", ".join(
            f"{name} {n / scored:.0%}" for name, n in self.outcomes.most_common()
        )
        return (
            f"{self.asked} rollouts asked ({fates or 'none back yet'}),"
            f" mean score {self.mean_score:.3f} ({outcomes or 'none scored yet'})"
        )

    def state_dict(self) -> dict[str, Any]:
        """Return the ledger as plain values."""
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
            raise ValueError(f"metrics need `asked` and `fates` ({error!r})") from error
        self.fates = fates
        self.asked = asked
