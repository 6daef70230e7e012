"""Alarms: signs that a policy is rewarded for nothing, or that samples are wasted.

    alarms = Alarms()  # for the whole training
    for line in alarms.take(item.task, item.gold, score(item, completions)):
        print(line)

Pure: groups go in as they are scored, lines for the log, counts and rows come out. What
is kept is bounded by the number of tasks. An alarm that goes on counts once in `WINDOW`
groups of its task.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any, NamedTuple

from rg_env.logs import is_worth_a_line
from rg_env.run.group import has_variance
from rg_env.stream.completion_results import Result

ALL = "all tasks"
"""Stands where an alarm is not of one task."""

# Newest groups of a task that count: 256 rollouts at the default group size. A task
# that is solved in 95 of 100 rollouts has so many groups of 8 without variance by
# chance twice in a million.
WINDOW = 32

# Fewer say nothing of a share: one bad item is a tenth of ten groups.
FEWEST_GROUPS = 16

GOLD_CHARS = 100

SHARES = {
    "scorer_errors": 0.02,  # a healthy scorer has none
    "timeouts": 0.05,  # each costs a worker its deadline
    "truncations": 0.5,  # most of the compute teaches nothing
}
"""Shares of the rollouts from which an alarm rings."""


class _Facts(NamedTuple):
    """What a window keeps of a group."""

    rollouts: int
    mean_reward: float
    has_variance: bool
    gold: str
    rewarded: frozenset[str]  # answers
    hits: Mapping[str, int]  # rollouts, by the names of `SHARES`


def _facts_of(
    gold: object, results: Sequence[Result], truncated: int, number: int
) -> _Facts:
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
    errors, timeouts = outcomes["scorer_error"], outcomes["timeout"]
    counts = (errors, timeouts, truncated)
    hits = dict(zip(SHARES, counts, strict=True))
    # Where there is no one gold answer, the question stands for it.
    text = f"#{number}" if gold is None else str(gold)
    text = text.strip().casefold()[:GOLD_CHARS]
    is_varied = len(rewards) < 2 or has_variance(rewards)
    return _Facts(len(rewards), fmean(rewards), is_varied, text, rewarded, hits)


# -- the conditions: a sentence where an alarm rings -----------------------------------

Window = Sequence[_Facts]


def _repeated_answer(window: Window) -> str | None:
    counts = Counter(answer for facts in window for answer in facts.rewarded)
    answer, count = next(iter(counts.most_common(1)), ("", 0))
    golds = {facts.gold for facts in window if answer in facts.rewarded}
    # A yes or no that is right half the time has one gold answer.
    if count < max(FEWEST_GROUPS, math.ceil(len(window) / 2)) or len(golds) < 8:
        return None
    return (
        f"the answer {answer!r} was rewarded in {count} of the last {len(window)}"
        f" questions, with {len(golds)} reference answers"
    )


def _no_variance(window: Window) -> str | None:
    if len(window) < WINDOW or any(facts.has_variance for facts in window):
        return None
    mean = f"now {window[-1].mean_reward:.2f}"
    return f"{WINDOW} groups in a row of equal rewards, {mean}"


def _share(name: str, window: Window) -> str | None:
    hits = [facts.hits[name] for facts in window if facts.hits[name]]
    total = sum(facts.rollouts for facts in window)
    # One item of which every answer hangs its scorer is 5 % of a window already.
    if len(window) < FEWEST_GROUPS or len(hits) < 3:
        return None
    share = sum(hits) / total
    sentence = f"{name} in {share:.0%} of the last {total} rollouts"
    return sentence if share >= SHARES[name] else None


OF_SHARES = {name: partial(_share, name) for name in SHARES}
OF_TASKS: dict[str, Callable[[Window], str | None]] = {
    "repeated_answer": _repeated_answer,
    "no_variance": _no_variance,
    **OF_SHARES,
}
"""Each alarm, to what rings it in the newest groups of a task; some ring for all."""


class Alarms:
    """Watches the groups of one run of any trainer.

    Attributes:
        counts: How often each alarm rang, by name.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter(dict.fromkeys(OF_TASKS, 0))
        self._reported = 0
        self._groups: Counter[str] = Counter()
        newest = partial(deque[_Facts], maxlen=WINDOW)  # which pickles
        self._windows: defaultdict[str, deque[_Facts]] = defaultdict(newest)
        self._rows: dict[tuple[str, str], list[Any]] = {}
        self._quiet_until: dict[tuple[str, str], int] = {}

    def take(
        self, task: str, gold: object, results: Sequence[Result], truncated: int = 0
    ) -> list[str]:
        """Take in the results of one item; return lines for the log.

        Args:
            task: Its task.
            gold: Its reference answer, None where there are many.
            results: Those of all its completions, with what was the reward as value;
                those without a score do not count.
            truncated: How many of the completions were cut off.

        Returns:
            Lines for the first, second, fourth ... time that each alarm rings.
        """
        lines = list[str]()
        if all(result.value is None for result in results):
            return lines
        facts = _facts_of(gold, results, truncated, self._groups[task])
        for place, conditions in ((task, OF_TASKS), (ALL, OF_SHARES)):
            self._windows[place].append(facts)
            self._groups[place] += 1
            for name, condition in conditions.items():
                key, now = (name, place), self._groups[place]
                is_quiet = now < self._quiet_until.get(key, 0)
                sentence = None if is_quiet else condition(self._windows[place])
                if sentence is None:
                    continue
                self._quiet_until[key] = now + WINDOW
                count = self._rows[key][2] if key in self._rows else 0
                self._rows[key] = [name, place, count + 1, sentence]
                self.counts[name] += 1
                if is_worth_a_line(total := self.counts[name]):
                    of_kind = f"(alarm {total} of this kind)"
                    lines.append(f"alarm {name}: {place}: {sentence} {of_kind}")
        return lines

    def news(self) -> list[list[Any]]:
        """Return a row for each alarm and task that rang, the commonest first.

        Its name, its task, how often it rang, and its newest sentence; [] if none has
        rung since the last call.
        """
        before, self._reported = self._reported, self.counts.total()
        if before == self._reported:
            return []
        return sorted(self._rows.values(), key=lambda row: -row[2])
