"""Alarms: signs that a policy is rewarded for nothing, or that samples are wasted.

    alarms = Alarms(print)  # for the whole training
    alarms.take(item.task, item.gold, score(item, completions))

Pure: groups go in as they are scored, lines for the log, counts and rows come out. The
memory is bounded by the number of tasks. An alarm that goes on counts once in `WINDOW`
groups of its task.
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
"""Stands where an alarm is not of one task."""

# Newest groups of a task that count: 256 rollouts at the default group size. A task
# that is solved in 95 of 100 rollouts has so many groups of 8 without variance by
# chance twice in a million.
WINDOW = 32

# Fewer say nothing of a share: one bad item is a tenth of ten groups.
MIN_GROUPS = 16

GOLD_CHARS = 100

SHARES = {
    "scorer_errors": 0.02,  # a healthy scorer has none
    "timeouts": 0.05,  # each costs a worker its deadline
    "truncations": 0.5,  # most of the compute teaches nothing
}
"""Shares of the rollouts from which an alarm rings."""


class _Facts(NamedTuple):
    """The facts of a group that a window keeps."""

    rollouts: int
    mean_reward: float
    has_variance: bool
    gold: str
    rewarded: frozenset[str]  # answers
    hits: Mapping[str, int]  # rollouts, by the names of `SHARES`


def _facts_of(gold: str, results: Sequence[Result], truncated: int) -> _Facts:
    pairs = [(r.answer, r.value) for r in results if r.value is not None]
    rewards = [reward for _, reward in pairs]
    # A longer answer that fits many questions is hardly found by chance. Scorers give
    # up to 0.05 for an answer that can be read; that alone is no game.
    rewarded = frozenset(
        answer.strip().casefold()
        for answer, reward in pairs
        if answer is not None and len(answer) <= 40 and reward >= 0.1
    )
    outcomes = Counter(result.outcome for result in results)
    hits = {
        "scorer_errors": outcomes["scorer_error"],
        "timeouts": outcomes["timeout"],
        "truncations": truncated,
    }
    return _Facts(
        rollouts=len(rewards),
        mean_reward=fmean(rewards),
        has_variance=len(rewards) < 2 or has_variance(rewards),
        gold=gold.strip().casefold()[:GOLD_CHARS],
        rewarded=rewarded,
        hits=hits,
    )


# -- the conditions: a sentence where an alarm rings -----------------------------------

Window = Sequence[_Facts]


def _repeated_answer(window: Window) -> str | None:
    counts = Counter(answer for facts in window for answer in facts.rewarded)
    ((answer, count),) = counts.most_common(1) or [("", 0)]
    golds = {facts.gold for facts in window if answer in facts.rewarded}
    # A yes or no that is right half the time has one gold answer.
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
    # One item whose answers all hang its scorer is 5 % of a window already.
    if len(window) < MIN_GROUPS or len(hits) < 3 or share < SHARES[name]:
        return None
    return f"{name} in {share:.0%} of the last {total} rollouts"


OF_SHARES = {name: partial(_share, name) for name in SHARES}
OF_TASKS: dict[str, Callable[[Window], str | None]] = {
    "repeated_answer": _repeated_answer,
    "no_variance": _no_variance,
    **OF_SHARES,
}
"""Each alarm with its condition on the newest groups of a task, or of all tasks."""


class Alarms:
    """Watches the groups of one run of any trainer.

    Args:
        on_alarm: Called with a line for the log at the first, second, fourth ... time
            that an alarm rings.

    Attributes:
        counts: How often each alarm rang, by name.
    """

    def __init__(self, on_alarm: Callable[[str], object]) -> None:
        self._on_alarm = on_alarm
        self.counts: Counter[str] = Counter(dict.fromkeys(OF_TASKS, 0))
        self._groups = 0
        self._reported = 0
        newest = partial(deque[_Facts], maxlen=WINDOW)  # which pickles
        self._windows: defaultdict[str, deque[_Facts]] = defaultdict(newest)
        # By the name of an alarm and its place:
        self._rung: Counter[tuple[str, str]] = Counter()
        self._sentences: dict[tuple[str, str], str] = {}
        self._quiet_for: Counter[tuple[str, str]] = Counter()  # groups

    def take(
        self, task: str, gold: object, results: Sequence[Result], truncated: int = 0
    ) -> None:
        """Take in the results of one item.

        Args:
            task: Its task.
            gold: Its reference answer, None where there are many.
            results: Those of all its completions, with the reward as value; those
                without a score do not count.
            truncated: How many of the completions were cut off.
        """
        if all(result.value is None for result in results):
            return
        self._groups += 1
        # Where there is no one gold answer, the question stands for it.
        gold = f"#{self._groups}" if gold is None else str(gold)
        facts = _facts_of(gold, results, truncated)
        for place, conditions in ((task, OF_TASKS), (ALL, OF_SHARES)):
            window = self._windows[place]
            window.append(facts)
            for name, condition in conditions.items():
                self._quiet_for[name, place] -= 1
                is_quiet = self._quiet_for[name, place] > 0
                sentence = None if is_quiet else condition(window)
                if sentence is not None:
                    self._ring(name, place, sentence)

    def _ring(self, name: str, place: str, sentence: str) -> None:
        self._quiet_for[name, place] = WINDOW
        self._rung[name, place] += 1
        self._sentences[name, place] = sentence
        self.counts[name] += 1
        count = self.counts[name]
        if should_log(count):
            of_kind = f"(alarm {count} of this kind)"
            self._on_alarm(f"alarm {name}: {place}: {sentence} {of_kind}")

    def new_rows(self) -> list[list[Any]]:
        """Return a row for each alarm and task that rang, the commonest first.

        Its name, its task, how often it rang, and its newest sentence; [] if none has
        rung since the last call.
        """
        before = self._reported
        self._reported = self.counts.total()
        if before == self._reported:
            return []
        return [[*key, n, self._sentences[key]] for key, n in self._rung.most_common()]
