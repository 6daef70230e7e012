"""Metrics of scored groups: `Metrics` of a run, `GroupLog` for a trainer of your own.

Example:
    log = GroupLog()
    log.take(item, score(item, completions))  # for each group
    wandb.log(log.metrics())
"""

from __future__ import annotations

import logging
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import fmean

from rg_env.reward.score import OUTCOMES
from rg_env.run.alarms import Alarms
from rg_env.run.group import Group, has_variance
from rg_env.run.ledger import Ledger
from rg_env.stream.completion_scores import Result
from rg_env.stream.item import Item

logger = logging.getLogger(__name__)

# Every tenth group is logged at INFO, the others at DEBUG.
GROUP_LINE_EVERY = 10


def _warn(line: str) -> None:
    # All ranks of a torchrun job have the same groups, so only rank 0 warns.
    if os.environ.get("RANK", "0") == "0":
        logger.warning("%s", line)


class _Counters:
    """Alarms, outcomes, and the values of metrics since they were last returned.

    Attributes:
        alarms: The alarms of the groups.
        outcomes: Number of rollouts so far, by outcome.
        values: Values since the last call, by metric; a metric is their mean.
    """

    def __init__(self, on_alarm: Callable[[str], object] = _warn) -> None:
        self.alarms = Alarms(on_alarm)
        self.outcomes: Counter[str] = Counter()
        self.values: defaultdict[str, list[float]] = defaultdict(list)
        self._outcomes_logged: Counter[str] = Counter()

    def _since_log(self, alarms: Mapping[str, int]) -> dict[str, float]:
        """Return means and shares since the last call, and these counts of alarms."""
        metrics = {
            name: fmean(values) for name, values in self.values.items() if values
        }
        self.values.clear()
        new = self.outcomes - self._outcomes_logged
        self._outcomes_logged = self.outcomes.copy()
        metrics |= {f"outcomes/{name}": n / new.total() for name, n in new.items()}
        return metrics | {f"alarms/{name}": n for name, n in alarms.items()}


class GroupLog(_Counters):
    """Metrics of the scored groups of one training run, in your own training loop.

    Args:
        on_alarm: Called with a line for the log when an alarm rings for the 1st, 2nd,
            4th, 8th, ... time. By default, the line is logged as a warning.
    """

    def take(self, item: Item, results: Sequence[Result], truncated: int = 0) -> None:
        """Take in the results of all completions of an item, and raise its alarms.

        `truncated` is how many of them were truncated. Those without a score only count
        as `unscored`.
        """
        scores = [result.value for result in results if result.value is not None]
        # Without a score, there may be no entry: the library may make another item now.
        gold = item.entry.get("answer") if scores else None
        self.alarms.take(item.task, gold, results, truncated)
        self.outcomes.update(result.outcome for result in results)
        self.values["unscored"] += [result.value is None for result in results]
        for result in results:
            for name, value in result.parts.items():
                self.values[name].append(value)
        if not scores:
            return
        self.values["groups_with_variance"].append(has_variance(scores))
        self.values[f"score/{item.task}"].append(fmean(scores))
        if item.level is not None:
            self.values[f"level/{item.task}"].append(item.level)

    def metrics(self) -> dict[str, float]:
        """Return the metrics of the groups that were taken since the last call.

        Returns:
            `unscored` and `outcomes/<outcome>`, shares of the completions, the latter
            of every outcome, because TRL averages over the calls that have a metric;
            `format`, `correct` and `partial`, means of `Result.parts`;
            `groups_with_variance`, a share of the groups; `score/<task>` and
            `level/<task>`, means over groups; and `alarms/<name>`, how often each alarm
            has rung so far.
        """
        zeros = {f"outcomes/{outcome}": 0.0 for outcome in OUTCOMES}
        # Unary plus leaves out the alarms that have not rung.
        return zeros | self._since_log(+self.alarms.counts)


class Metrics(_Counters):
    """Metrics of one run of `serve`, `process` or `screen`, which `take`s its groups.

    Attributes:
        ledger: How the rollouts of the run have ended.
        groups: Number of scored groups so far.
        events: Counts of other events, such as retries, by name.
        correct_since_log: For each rollout since the last log, 1.0 if it counts as
            correct, else 0.0.
    """

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(partial(logger.warning, "%s"))
        self.ledger = ledger
        self.groups = 0
        self.events: Counter[str] = Counter()
        self.correct_since_log: list[float] = []
        self._score_sum = 0.0

    async def take(self, group: Group) -> None:
        """Count the rollouts of a scored group, and log the group."""
        self.groups += 1
        self._score_sum += sum(group.scores)
        # Source: atropos 296a0bc, score(), percent_correct_buffer; differs: none.
        self.correct_since_log += [float(score >= 0.5) for score in group.scores]
        rollouts = group.rollouts
        is_truncated = [r.finish_reason == "length" for r in rollouts]
        self.values["train/truncated"] += is_truncated
        self.values["train/completion_tokens"] += [
            r.completion_tokens for r in rollouts
        ]
        self.values["train/mean_score"] += group.scores
        self.values["train/groups_with_variance"].append(has_variance(group.rewards))
        if group.level is not None:
            self.values["train/level"].append(group.level)
        results = [Result(r.reward, r.outcome, r.answer) for r in rollouts]
        self.alarms.take(group.task, group.gold_answer, results, sum(is_truncated))
        outcomes = Counter(rollout.outcome for rollout in rollouts)
        self.outcomes += outcomes
        self._log(group, outcomes)

    def _log(self, group: Group, outcomes: Counter[str]) -> None:
        is_due = self.groups == 1 or self.groups % GROUP_LINE_EVERY == 0
        at_level = "" if group.level is None else f" at level {group.level:.2f}"
        logger.log(
            logging.INFO if is_due else logging.DEBUG,
            "group %d: %s%s, mean score %.3f (%s)",
            self.groups,
            group.task,
            at_level,
            group.mean_score,
            ", ".join(f"{outcome} {n}" for outcome, n in outcomes.most_common()),
        )
        for rollout in group.rollouts:
            formats = rollout.formats or {}
            logger.debug(
                "  %s, answer %.200r, score %.3f (bare %s, tagged %s), reward %.3f",
                rollout.outcome,
                rollout.answer,
                rollout.score,
                formats.get("bare"),
                formats.get("tagged"),
                rollout.reward,
            )

    @property
    def mean_score(self) -> float:
        """Mean score of all scored rollouts, in [0, 1]; 0 before the first one."""
        return self._score_sum / (self.outcomes.total() or 1)

    def metrics(self) -> dict[str, float]:
        """Return the totals, and shares and means since the last call."""
        self.values["train/percent_correct"] = self.correct_since_log
        self.correct_since_log = []
        metrics = self._since_log(self.alarms.counts)
        metrics["train/rollouts_scored"] = self.outcomes.total()
        metrics["ledger/rollouts_queried"] = self.ledger.queried
        metrics |= {f"ledger/{word}": n for word, n in self.ledger.endings.items()}
        return metrics | {f"events/{name}": n for name, n in self.events.items()}

    async def log_summary(self) -> None:
        """Log how all rollouts so far have ended and scored, if any were queried."""
        if not self.ledger.queried:
            return
        summary = "none scored yet"
        if scored := self.outcomes.total():
            shares = ", ".join(
                f"{outcome} {n / scored:.0%}"
                for outcome, n in self.outcomes.most_common()
            )
            summary = f"mean score {self.mean_score:.3f}; of {scored} scored: {shares}"
        logger.info("%s, %s", self.ledger, summary)
