"""Alarms: signs that a policy is rewarded for nothing, or that samples are wasted.

    alarms = Alarms(print)  # for the whole training
    alarms.take(item.task, item.gold, score(item, completions))

`Alarms` takes scored groups, and gives lines for the log, counts and rows of a table.
Its memory is bounded by the number of tasks. An alarm whose condition lasts counts once
in `WINDOW` groups of its task.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any, NamedTuple

from rg_env.logs import should_log
from rg_env.run.group import has_variance
from rg_env.stream.completion_scores import Result

ALL = "all tasks"
"""The scope of an alarm that is not of one task."""

# Number of the newest groups that count: 256 rollouts at the default group size. For a
# task that is solved in 95 of 100 rollouts, the chance that this many groups of 8 have
# no variance is two in a million.
WINDOW = 32

# With fewer groups, one bad item would be a large share.
MIN_GROUPS = 16

GOLD_CHARS = 100

SHARES = {
    "scorer_errors": 0.02,  # a healthy scorer has none
    "timeouts": 0.05,  # each takes a worker for its whole deadline
    "truncations": 0.5,  # most of the compute teaches nothing
}
"""The smallest share of the rollouts at which each of these alarms rings."""


class _GroupFacts(NamedTuple):
    """The facts of a group that a window keeps."""

    rollouts: int
    mean_reward: float
    has_variance: bool
    gold: str
    rewarded: frozenset[str]  # answers
    hits: Mapping[str, int]  # number of rollouts, by the names of `SHARES`


def _summarize(gold: str, results: Sequence[Result], truncated: int) -> _GroupFacts:
    pairs = [(r.answer, r.value) for r in results if r.value is not None]
    rewards = [reward for _, reward in pairs]
    # Long answers are left out: a policy hardly finds one that fits many questions. So
    # are rewards below 0.1: scorers give up to 0.05 for any answer that they can parse.
    rewarded = frozenset(
        answer.strip().casefold()
        for answer, reward in pairs
        if answer is not None and len(answer) <= 40 and reward >= 0.1
    )
    outcomes = Counter(result.outcome for result in results)
    return _GroupFacts(
        rollouts=len(results),
        mean_reward=fmean(rewards),
        has_variance=len(rewards) < 2 or has_variance(rewards),
        gold=gold.strip().casefold()[:GOLD_CHARS],
        rewarded=rewarded,
        hits={
            "scorer_errors": outcomes["scorer_error"],
            "timeouts": outcomes["timeout"],
            "truncations": truncated,
        },
    )


# -- conditions, which return a sentence if an alarm rings -----------------------------

Window = Sequence[_GroupFacts]


def _repeated_answer(window: Window) -> str | None:
    counts = Counter(answer for facts in window for answer in facts.rewarded)
    ((answer, count),) = counts.most_common(1) or [("", 0)]
    golds = {facts.gold for facts in window if answer in facts.rewarded}
    # "yes" is right in half of the yes-or-no questions, but all of these have one gold.
    if count < max(MIN_GROUPS, math.ceil(len(window) / 2)) or len(golds) < 8:
        return None
    return (
        f"the answer {answer!r} was rewarded in {count} of the last {len(window)}"
        f" questions, with {len(golds)} reference answers"
    )


def _no_variance(window: Window) -> str | None:
    if len(window) < WINDOW or any(facts.has_variance for facts in window):
        return None
    mean = window[-1].mean_reward
    return f"{WINDOW} groups in a row of equal rewards, now {mean:.2f}"


def _share(name: str, window: Window) -> str | None:
    hits = [facts.hits[name] for facts in window if facts.hits[name]]
    total = sum(facts.rollouts for facts in window)
    share = sum(hits) / total
    # One item whose answers all hang its scorer can be 5 % of a window.
    if len(window) < MIN_GROUPS or len(hits) < 3 or share < SHARES[name]:
        return None
    return f"{name} in {share:.0%} of the last {total} rollouts"


SHARE_ALARMS = {name: partial(_share, name) for name in SHARES}
"""The alarms for the newest groups of all tasks, with their conditions."""

TASK_ALARMS: dict[str, Callable[[Window], str | None]] = {
    "repeated_answer": _repeated_answer,
    "no_variance": _no_variance,
    **SHARE_ALARMS,
}
"""The alarms for the newest groups of one task, with their conditions."""


class Alarms:
    """Watches the groups of one run of any trainer.

    Args:
        on_alarm: Called with a line for the log when an alarm rings for the 1st, 2nd,
            4th, 8th, ... time.

    Attributes:
        counts: How often each alarm has rung, by name.
    """

    def __init__(self, on_alarm: Callable[[str], object]) -> None:
        self._on_alarm = on_alarm
        self.counts: Counter[str] = Counter(dict.fromkeys(TASK_ALARMS, 0))
        self._groups = 0
        self._reported = 0
        # A run of another trainer may pickle its alarms, so this is not a lambda.
        new_window = partial(deque[_GroupFacts], maxlen=WINDOW)
        self._windows: defaultdict[str, deque[_GroupFacts]] = defaultdict(new_window)
        # By name and scope of an alarm, where the scope is a task or `ALL`:
        self._rung: Counter[tuple[str, str]] = Counter()
        self._sentences: dict[tuple[str, str], str] = {}
        self._quiet_for: Counter[tuple[str, str]] = Counter()  # groups

    def take(
        self, task: str, gold: object, results: Sequence[Result], truncated: int = 0
    ) -> None:
        """Take in the results of one item.

        Args:
            task: Its task.
            gold: Its reference answer, None if there are many.
            results: The results of all its completions, with the reward as value;
                those without a value only count as rollouts.
            truncated: How many of the completions were truncated.
        """
        if all(result.value is None for result in results):
            return
        self._groups += 1
        # Without a single gold answer, each group counts as one with another gold.
        gold = f"#{self._groups}" if gold is None else str(gold)
        facts = _summarize(gold, results, truncated)
        for scope, conditions in ((task, TASK_ALARMS), (ALL, SHARE_ALARMS)):
            window = self._windows[scope]
            window.append(facts)
            for name, condition in conditions.items():
                key = name, scope
                self._quiet_for[key] -= 1
                if self._quiet_for[key] > 0:
                    continue
                sentence = condition(window)
                if sentence is not None:
                    self._ring(key, sentence)

    def _ring(self, key: tuple[str, str], sentence: str) -> None:
        self._quiet_for[key] = WINDOW
        self._rung[key] += 1
        self._sentences[key] = sentence
        name, scope = key
        self.counts[name] += 1
        count = self.counts[name]
        if should_log(count):
            self._on_alarm(
                f"alarm {name}: {scope}: {sentence} (alarm {count} of this kind)"
            )

    def new_rows(self) -> list[list[Any]]:
        """Return a table of all alarms so far; [] if none has rung since the last call.

        A row has the name, the scope, how often it rang, and its newest sentence. The
        most frequent alarm is the first.
        """
        before = self._reported
        self._reported = self.counts.total()
        if before == self._reported:
            return []
        return [[*key, n, self._sentences[key]] for key, n in self._rung.most_common()]
