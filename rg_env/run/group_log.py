"""What any trainer logs of its groups: means since the last time, and alarms.

log = GroupLog()
log.take(item, score(item, completions))  # for each group
wandb.log(log.metrics())
"""

from __future__ import annotations

import logging
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from statistics import fmean

from rg_env.reward.score import OUTCOMES
from rg_env.run.alarms import Alarms
from rg_env.run.group import has_variance
from rg_env.stream.completion_results import Result
from rg_env.stream.item import Item

logger = logging.getLogger(__name__)


def _warn(line: str) -> None:
    # Of the processes that torchrun numbers, which have the same groups, one warns.
    if os.environ.get("RANK", "0") == "0":
        logger.warning("%s", line)


class GroupLog:
    """Takes the scored groups of one training.

    Args:
        on_alarm: Called with a line for the log when an alarm rings, the first, second,
            fourth ... time. By default, it is logged as a warning.
    """

    def __init__(self, on_alarm: Callable[[str], object] = _warn) -> None:
        self._on_alarm = on_alarm
        self._alarms = Alarms()
        self._outcomes: Counter[str] = Counter()
        self._means: defaultdict[str, list[float]] = defaultdict(list)

    def take(self, item: Item, results: Sequence[Result], truncated: int = 0) -> None:
        """Take in the results of all completions of an item, and raise its alarms.

        `truncated` is how many of them were cut off. Those without a score count as
        `unscored` alone.
        """
        self._outcomes.update(result.outcome for result in results)
        self._means["unscored"] += [result.value is None for result in results]
        scores = [result.value for result in results if result.value is not None]
        if not scores:
            return
        self._means["groups_with_variance"].append(has_variance(scores))
        self._means[f"score/{item.task}"].append(fmean(scores))
        if item.level is not None:
            self._means[f"level/{item.task}"].append(item.level)
        given = (item.task, item.entry.get("answer"), results, truncated)
        for line in self._alarms.take(*given):
            self._on_alarm(line)

    def metrics(self) -> dict[str, float]:
        """Return the metrics of what was taken in since the last call.

        Returns:
            `unscored` and `outcomes/<outcome>`, shares of the completions, the latter
            of every outcome, because TRL averages over the calls that have a metric;
            `groups_with_variance`, a share of the groups; `score/<task>` and
            `level/<task>`, means over groups; and `alarms/<name>`, how often each alarm
            has rung so far.
        """
        means = {name: fmean(values) for name, values in self._means.items()}
        total = self._outcomes.total() or 1
        for outcome in OUTCOMES:
            means[f"outcomes/{outcome}"] = self._outcomes[outcome] / total
        rung = +self._alarms.counts
        means |= {f"alarms/{name}": number for name, number in rung.items()}
        self._means.clear()
        self._outcomes.clear()
        return means
