"""Counts of what happened to the rollouts, and the numbers for W&B and the log."""

from __future__ import annotations

import dataclasses
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from rg_env.logs import is_worth_a_line
from rg_env.reports.alarms import Alarms
from rg_env.rollouts.group import Group, Ledger, has_variance
from rg_env.scoring.extraction import FORMAT_FAILURES
from rg_env.tasks.feedback import Feedback

TROUBLE = frozenset({"rejected", "timeout", "scorer_error"})
"""Outcomes that say something of the scorer as well as of the answer."""


def _in_words(numbers: Mapping[str, float], unit: str) -> str:
    ordered = sorted(numbers.items(), key=lambda item: -item[1])
    return ", ".join(unit.format(name, number) for name, number in ordered)


@dataclasses.dataclass
class TaskTally:
    """Groups and rollouts of one task that were scored, and the sum of the scores."""

    groups: int = 0
    rollouts: int = 0
    score_sum: float = 0.0

    @property
    def mean_score(self) -> float:
        """Mean score of the task's rollouts, in [0, 1]; 0 before the first."""
        return self.score_sum / self.rollouts if self.rollouts else 0.0


class Metrics:
    """Counters of one run.

    Attributes:
        ledger: The outcomes of its rollouts.
        outcomes: Number of rollouts by outcome.
        task_outcomes: The same by (task, outcome).
        events: Other things worth counting (retries, prompts too long), by name.
        alarms: What looks wrong in the scores.
        correct_since_log: 1.0 for each rollout since the last log that counts as
            correct, 0.0 for the others.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.outcomes: Counter[str] = Counter()
        self.task_outcomes: Counter[tuple[str, str]] = Counter()
        self.tasks: dict[str, TaskTally] = {}
        self.events: Counter[str] = Counter()
        self.alarms = Alarms()
        self._outcomes_logged: Counter[str] = Counter()
        self.correct_since_log: list[float] = []
        self._since_log: defaultdict[str, list[float]] = defaultdict(list)

    def record_group(self, group: Group) -> None:
        """Count the rollouts of one scored group."""
        tally = self.tasks.setdefault(group.task, TaskTally())
        tally.groups += 1
        for rollout in group.rollouts:
            tally.rollouts += 1
            tally.score_sum += rollout.score
            self.outcomes[rollout.outcome] += 1
            self.task_outcomes[group.task, rollout.outcome] += 1
        self.correct_since_log += group.correct
        new = self._since_log
        new["train/mean_score"] += group.scores
        new["train/groups_with_variance"].append(has_variance(group.rewards))
        if group.level is not None:
            new["train/level"].append(group.level)
        for rollout in group.rollouts:
            new["train/completion_tokens"].append(rollout.completion_tokens)
            new["train/truncated"].append(rollout.finish_reason == "length")

    @property
    def groups(self) -> int:
        """Groups scored so far."""
        return sum(tally.groups for tally in self.tasks.values())

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

    def new_warnings(self, group: Group) -> list[str]:
        """Return the warnings about the newest group.

        There is a warning for a task's first rejected answer, timeout or scorer error,
        and for its second, fourth, eighth and so on, which keeps the log of a long run
        readable.
        """
        worth_saying = []
        for outcome in sorted({r.outcome for r in group.rollouts} & TROUBLE):
            now = self.task_outcomes[group.task, outcome]
            new = sum(r.outcome == outcome for r in group.rollouts)
            if is_worth_a_line(now, new):
                worth_saying.append(f"{group.task}: outcome {outcome}, {now} so far")
        return worth_saying

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
        outcomes = Counter(rollout.outcome for rollout in group.rollouts)
        return (
            f"group {self.groups}: {group.task}{at_level}, mean score"
            f" {group.mean_score:.3f} ({_in_words(outcomes, '{0} {1}')})"
        )

    def summary(self) -> str:
        """Return a line for the log: ends and scores of the rollouts, outcomes."""
        scored = sum(self.outcomes.values())
        if not scored:
            return f"{self.ledger}, none scored yet"
        shares = {name: n / scored for name, n in self.outcomes.items()}
        failures = {n: share for n, share in shares.items() if n in FORMAT_FAILURES}
        others = {n: share for n, share in shares.items() if n not in failures}
        parts = [_in_words(others, "{0} {1:.0%}")] if others else []
        if failures:
            kinds = _in_words(failures, "{0} {1:.0%}")
            parts.append(f"format failures {sum(failures.values()):.0%}: {kinds}")
        mean = f"{self.ledger}, mean score {self.mean_score:.3f}"
        return f"{mean}; of {scored} scored: {'; '.join(parts)}"


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
