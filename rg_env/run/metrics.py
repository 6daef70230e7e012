"""Counters of scored groups, for the log of a run or of any trainer.

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
from rg_env.run.group import Group, Ledger, has_variance
from rg_env.stream.completion_scores import Result
from rg_env.stream.item import Item

logger = logging.getLogger(__name__)

# One group in so many has its scores in the log, without `debug_logging`.
GROUP_LINE_EVERY = 10


def _warn(line: str) -> None:
    # The processes that torchrun numbers have the same groups, so one of them warns.
    if os.environ.get("RANK", "0") == "0":
        logger.warning("%s", line)


class _Counters:
    """Counts groups between one log and the next.

    Attributes:
        alarms: The alarms of the groups.
        outcomes: Number of rollouts so far, by outcome.
        values: Values since the newest log, by metric; a metric is their mean.
    """

    def __init__(self, on_alarm: Callable[[str], object] = _warn) -> None:
        self.alarms = Alarms(on_alarm)
        self.outcomes: Counter[str] = Counter()
        self.values: defaultdict[str, list[float]] = defaultdict(list)
        self._outcomes_logged: Counter[str] = Counter()

    def _since_log(self, alarms: Mapping[str, int]) -> dict[str, float]:
        """Return means and shares since the last call, and counts of alarms."""
        numbers = {name: fmean(of) for name, of in self.values.items() if of}
        self.values.clear()
        new = self.outcomes - self._outcomes_logged
        self._outcomes_logged = self.outcomes.copy()
        numbers |= {f"outcomes/{name}": n / new.total() for name, n in new.items()}
        return numbers | {f"alarms/{name}": n for name, n in alarms.items()}


class GroupLog(_Counters):
    """Takes the scored groups of one training.

    Args:
        on_alarm: Called with a line for the log when an alarm rings, the first, second,
            fourth ... time. By default, it is logged as a warning.
    """

    def take(self, item: Item, results: Sequence[Result], truncated: int = 0) -> None:
        """Take in the results of all completions of an item, and raise its alarms.

        `truncated` is how many of them were cut off. Those without a score count as
        `unscored` alone.
        """
        scores = [result.value for result in results if result.value is not None]
        # An item that the installed library makes otherwise has no entry, and no score.
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
        none = {f"outcomes/{outcome}": 0.0 for outcome in OUTCOMES}
        return none | self._since_log(+self.alarms.counts)


class Metrics(_Counters):
    """Counters of one run, which takes its scored groups.

    `events` are other things worth counting, such as retries; `correct_since_log` has
    1.0 for each rollout since the last log that counts as correct, 0.0 for the others.
    """

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(partial(logger.warning, "%s"))
        self.ledger = ledger
        self.groups = 0
        self.events: Counter[str] = Counter()
        self.correct_since_log: list[float] = []
        self._score_sum = 0.0

    async def take(self, group: Group) -> None:
        """Count the rollouts of a scored group, and log the group if it is due."""
        self.groups += 1
        self._score_sum += sum(group.scores)
        # Source: atropos 296a0bc, score(), percent_correct_buffer; differs: none.
        self.correct_since_log += [float(score >= 0.5) for score in group.scores]
        rollouts = group.rollouts
        is_cut = [rollout.finish_reason == "length" for rollout in rollouts]
        self.values["train/truncated"] += is_cut
        lengths = [rollout.completion_tokens for rollout in rollouts]
        self.values["train/completion_tokens"] += lengths
        self.values["train/mean_score"] += group.scores
        self.values["train/groups_with_variance"].append(has_variance(group.rewards))
        if group.level is not None:
            self.values["train/level"].append(group.level)
        results = [Result(r.reward, r.outcome, r.answer) for r in rollouts]
        self.alarms.take(group.task, group.gold_answer, results, sum(is_cut))
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
        for each in group.rollouts:
            formats = each.formats or {}
            logger.debug(
                "  %s, answer %.200r, score %.3f (bare %s, tagged %s), reward %.3f",
                each.outcome,
                each.answer,
                each.score,
                formats.get("bare"),
                formats.get("tagged"),
                each.reward,
            )

    @property
    def mean_score(self) -> float:
        """Mean score of all rollouts scored, in [0, 1]; 0 before the first."""
        return self._score_sum / (self.outcomes.total() or 1)

    def metrics(self) -> dict[str, float]:
        """Return the totals, and shares and means since the last call."""
        self.values["train/percent_correct"] = self.correct_since_log
        self.correct_since_log = []
        numbers = self._since_log(self.alarms.counts)
        numbers["train/rollouts_scored"] = self.outcomes.total()
        numbers["ledger/rollouts_queried"] = self.ledger.queried
        numbers |= {f"ledger/{word}": n for word, n in self.ledger.outcomes.items()}
        return numbers | {f"events/{name}": n for name, n in self.events.items()}

    async def log_summary(self) -> None:
        """Log how the rollouts have ended and scored so far, if there are any."""
        scored = self.outcomes.total()
        most = self.outcomes.most_common()
        shares = ", ".join(f"{outcome} {n / scored:.0%}" for outcome, n in most)
        mean = f"mean score {self.mean_score:.3f}; of {scored} scored: {shares}"
        if self.ledger.queried:
            logger.info("%s, %s", self.ledger, mean if scored else "none scored yet")
