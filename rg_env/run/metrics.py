"""Counts of what happened to the rollouts, and the numbers for W&B and the log."""

from __future__ import annotations

import logging
import statistics
from collections import Counter, defaultdict

from rg_env.run.alarms import Alarms
from rg_env.run.group import Group, Ledger, has_variance
from rg_env.stream.completion_results import Result

logger = logging.getLogger(__name__)

# Groups of which one has its scores in the log, without `debug_logging`.
GROUP_LINE_EVERY = 10


class Metrics:
    """Counters of one run, which takes its scored groups.

    `events` are other things worth counting, such as retries; `correct_since_log` has
    1.0 for each rollout since the last log that counts as correct, 0.0 for the others.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.groups, self._score_sum = 0, 0.0
        self.outcomes: Counter[str] = Counter()
        self.events: Counter[str] = Counter()
        self.alarms = Alarms()
        self._outcomes_logged: Counter[str] = Counter()
        self.correct_since_log: list[float] = []
        self._since_log: defaultdict[str, list[float]] = defaultdict(list)

    async def take(self, group: Group) -> None:
        """Count the rollouts of a scored group, and log its alarms and perhaps it."""
        self.groups += 1
        self._score_sum += sum(group.scores)
        outcomes = Counter(rollout.outcome for rollout in group.rollouts)
        self.outcomes += outcomes
        # Source: atropos 296a0bc, score(), percent_correct_buffer; differs: none.
        self.correct_since_log += [float(score >= 0.5) for score in group.scores]
        new = self._since_log
        new["train/mean_score"] += group.scores
        new["train/groups_with_variance"].append(has_variance(group.rewards))
        if group.level is not None:
            new["train/level"].append(group.level)
        for rollout in group.rollouts:
            new["train/completion_tokens"].append(rollout.completion_tokens)
            new["train/truncated"].append(rollout.finish_reason == "length")
        results = [Result(r.reward, r.outcome, r.answer) for r in group.rollouts]
        truncated = sum(r.finish_reason == "length" for r in group.rollouts)
        given = (group.task, group.gold_answer, results, truncated)
        for line in self.alarms.take(*given):
            logger.warning("%s", line)
        is_logged = self.groups == 1 or self.groups % GROUP_LINE_EVERY == 0
        at_level = "" if group.level is None else f" at level {group.level:.2f}"
        logger.log(
            logging.INFO if is_logged else logging.DEBUG,
            "group %d: %s%s, mean score %.3f (%s)",
            *(self.groups, group.task, at_level, group.mean_score),
            ", ".join(f"{outcome} {n}" for outcome, n in outcomes.most_common()),
        )
        for each in group.rollouts:
            both = each.formats or {}
            logger.debug(
                "  %s, answer %.200r, score %.3f (bare %s, tagged %s), reward %.3f",
                each.outcome,
                each.answer,
                each.score,
                both.get("bare"),
                both.get("tagged"),
                each.reward,
            )

    @property
    def mean_score(self) -> float:
        """Mean score of all rollouts scored, in [0, 1]; 0 before the first."""
        return self._score_sum / (self.outcomes.total() or 1)

    def numbers(self) -> dict[str, float]:
        """Return the totals, and shares and means since the last call."""
        scalars: dict[str, float] = {"ledger/rollouts_queried": self.ledger.queried}
        scalars |= {f"ledger/{word}": n for word, n in self.ledger.outcomes.items()}
        scalars |= {f"events/{name}": n for name, n in self.events.items()}
        new = self.outcomes - self._outcomes_logged
        total = new.total()
        scalars |= {f"outcomes/{name}": n / total for name, n in new.items()}
        self._outcomes_logged = self.outcomes.copy()
        scalars["train/rollouts_scored"] = self.outcomes.total()
        since = {**self._since_log, "train/percent_correct": self.correct_since_log}
        scalars |= {name: statistics.fmean(of) for name, of in since.items() if of}
        self._since_log, self.correct_since_log = defaultdict(list), []
        return scalars | {f"alarms/{name}": n for name, n in self.alarms.counts.items()}

    async def log_summary(self) -> None:
        """Log how the rollouts have ended and scored so far, if there are any."""
        scored, most = self.outcomes.total(), self.outcomes.most_common()
        shares = ", ".join(f"{outcome} {n / scored:.0%}" for outcome, n in most)
        mean = f"mean score {self.mean_score:.3f}; of {scored} scored: {shares}"
        if self.ledger.queried:
            logger.info("%s, %s", self.ledger, mean if scored else "none scored yet")
