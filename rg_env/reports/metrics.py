"""Counts of what happened to the rollouts, and the numbers for W&B and the log."""

from __future__ import annotations

import dataclasses
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from rg_env.logs import is_worth_a_line
from rg_env.reports.alarms import Alarms
from rg_env.rollouts.group import Group, Ledger, has_variance
from rg_env.tasks.feedback import Feedback

TROUBLE = frozenset({"rejected", "timeout", "scorer_error"})
"""Outcomes that say something of the scorer as well as of the answer."""


def _outcomes_of(group: Group) -> list[str]:
    return [rollout.outcome for rollout in group.rollouts]


@dataclasses.dataclass
class TaskTally:
    """The groups of one task that were scored, and their rollouts by outcome."""

    groups: int = 0
    score_sum: float = 0.0
    outcomes: Counter[str] = dataclasses.field(default_factory=Counter)

    @property
    def mean_score(self) -> float:
        """Mean score of the task's rollouts, in [0, 1]; 0 before the first."""
        return self.score_sum / (self.outcomes.total() or 1)


class Metrics:
    """Counters of one run.

    Attributes:
        ledger: The outcomes of its rollouts.
        outcomes: Number of rollouts by outcome.
        events: Other things worth counting (retries, prompts too long), by name.
        alarms: What looks wrong in the scores.
        correct_since_log: 1.0 for each rollout since the last log that counts as
            correct, 0.0 for the others.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.outcomes: Counter[str] = Counter()
        self.tasks: defaultdict[str, TaskTally] = defaultdict(TaskTally)
        self.events: Counter[str] = Counter()
        self.alarms = Alarms()
        self._outcomes_logged: Counter[str] = Counter()
        self.correct_since_log: list[float] = []
        self._since_log: defaultdict[str, list[float]] = defaultdict(list)

    def record_group(
        self, group: Group, logprobs: Sequence[float | None] = ()
    ) -> list[str]:
        """Count the rollouts of a scored group.

        Args:
            group: The group.
            logprobs: The mean log-probability of each completion, if it is known.

        Returns:
            The warnings about it: alarms, and a task's first rejected answer, timeout
            or scorer error, its second, fourth, eighth and so on, which keeps the log
            of a long run readable.
        """
        tally, outcomes = self.tasks[group.task], Counter(_outcomes_of(group))
        tally.groups += 1
        tally.score_sum += sum(group.scores)
        tally.outcomes += outcomes
        self.outcomes += outcomes
        self.correct_since_log += group.correct
        new = self._since_log
        new["train/mean_score"] += group.scores
        new["train/groups_with_variance"].append(has_variance(group.rewards))
        if group.level is not None:
            new["train/level"].append(group.level)
        for rollout in group.rollouts:
            new["train/completion_tokens"].append(rollout.completion_tokens)
            new["train/truncated"].append(rollout.finish_reason == "length")
        trouble = [
            f"{group.task}: outcome {outcome}, {tally.outcomes[outcome]} so far"
            for outcome in sorted(outcomes.keys() & TROUBLE)
            if is_worth_a_line(tally.outcomes[outcome], outcomes[outcome])
        ]
        return trouble + self.alarms.take(group, logprobs)

    @property
    def groups(self) -> int:
        """Groups scored so far."""
        return sum(tally.groups for tally in self.tasks.values())

    @property
    def mean_score(self) -> float:
        """Mean score of all rollouts scored, in [0, 1]; 0 before the first."""
        total = sum(tally.score_sum for tally in self.tasks.values())
        return total / (self.outcomes.total() or 1)

    def task_table(self) -> tuple[list[str], list[list[Any]]]:
        """Return columns and rows of a table: a row a task, its outcomes counted."""
        outcomes = sorted(self.outcomes)
        rows = [
            [
                task,
                tally.groups,
                tally.mean_score,
                *(tally.outcomes[name] for name in outcomes),
            ]
            for task, tally in sorted(self.tasks.items())
        ]
        return ["task", "groups", "mean score", *outcomes], rows

    def wandb_scalars(self) -> dict[str, float]:
        """Return the ledger's totals, and shares and means since the last call."""
        scalars = self.ledger.scalars()
        scalars.update({f"events/{name}": n for name, n in self.events.items()})
        new = self.outcomes - self._outcomes_logged
        total = sum(new.values())
        scalars.update({f"outcomes/{name}": n / total for name, n in new.items()})
        self._outcomes_logged = self.outcomes.copy()
        scalars["train/rollouts_scored"] = self.outcomes.total()
        since = {**self._since_log, "train/percent_correct": self.correct_since_log}
        scalars.update({n: statistics.fmean(of) for n, of in since.items() if of})
        self._since_log, self.correct_since_log = defaultdict(list), []
        return scalars

    def group_line(self, group: Group) -> str:
        """Return one line for the log: task, level and scores of the newest group."""
        at_level = "" if group.level is None else f" at level {group.level:.2f}"
        most = Counter(_outcomes_of(group)).most_common()
        outcomes = ", ".join(f"{outcome} {n}" for outcome, n in most)
        return (
            f"group {self.groups}: {group.task}{at_level}, mean score"
            f" {group.mean_score:.3f} ({outcomes})"
        )

    def summary(self) -> str:
        """Return a line for the log: ends and scores of the rollouts, outcomes."""
        scored = self.outcomes.total()
        if not scored:
            return f"{self.ledger}, none scored yet"
        mean = f"{self.ledger}, mean score {self.mean_score:.3f}"
        most = self.outcomes.most_common()
        shares = ", ".join(f"{outcome} {n / scored:.0%}" for outcome, n in most)
        return f"{mean}; of {scored} scored: {shares}"


def run_numbers(
    metrics: Metrics, feedback: Feedback, events: Mapping[str, int]
) -> dict[str, Any]:
    """Return name and value of each number; the metrics take up the events."""
    for name, count in events.items():
        metrics.events[name] = count
    numbers: dict[str, Any] = metrics.wandb_scalars()
    numbers |= {f"alarms/{name}": n for name, n in metrics.alarms.counts.items()}
    if feedback.moves_something:
        numbers |= {f"curriculum/{name}": n for name, n in feedback.stats().items()}
    return numbers
