"""Alarms: signs that a policy is rewarded for nothing, or that samples are wasted.

    repeated_answer    one short answer is rewarded for half of a task's questions
    no_variance        no group of a task has reward variance
    scorer_errors      a healthy scorer has none
    timeouts           each costs a worker its deadline
    truncations        most of the compute teaches nothing

Pure: groups go in as they are scored, lines for the log, counts and rows come out. What
is kept is bounded by the number of tasks. An alarm that goes on counts once in `WINDOW`
groups of its task.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any, NamedTuple

from rg_env.logs import is_worth_a_line
from rg_env.rollouts.group import Group, Rollout, has_variance

ALL = "all tasks"
"""Stands where an alarm is not of one task."""

WINDOW = 32
"""Newest groups of a task that count: 256 rollouts at the default group size. A task
that is solved in 95 of 100 rollouts has so many groups of 8 without variance by chance
twice in a million."""

FEWEST_GROUPS = 16
"""Fewer say nothing of a share: one bad item is a tenth of ten groups."""

MOST_EXAMPLES, EXAMPLE_CHARS = 3, 100


SHARES: dict[str, tuple[float, Callable[[Rollout], bool]]] = {
    "scorer_errors": (0.02, lambda rollout: rollout.outcome == "scorer_error"),
    "timeouts": (0.05, lambda rollout: rollout.outcome == "timeout"),
    "truncations": (0.5, lambda rollout: rollout.finish_reason == "length"),
}
"""Shares of the rollouts from which an alarm rings, and what counts for it."""


class _Facts(NamedTuple):
    """What a window keeps of a group; `rewarded` has the example of each answer."""

    rollouts: int
    mean_reward: float
    has_variance: bool
    gold: str
    rewarded: Mapping[str, str]
    hits: Mapping[str, Sequence[str]]


def _example(group: Group, rollout: Rollout) -> str:
    answer, gold = (
        "none" if text is None else repr(str(text)[:EXAMPLE_CHARS])
        for text in (rollout.answer, group.gold_answer)
    )
    seed = f", seed {group.origin['seed']}" if group.origin else ""
    result = f"{rollout.score:.4g}, {rollout.outcome}{seed}"
    return f"answer {answer}, reference answer {gold}: {result}"


def _facts_of(group: Group, number: int) -> _Facts:
    rollouts, rewards = group.rollouts, group.rewards
    # A longer answer that fits many questions is hardly found by chance. Scorers give
    # up to 0.05 for an answer that can be read; that alone is no game.
    rewarded = {
        rollout.answer.strip().casefold(): _example(group, rollout)
        for rollout in rollouts
        if rollout.answer is not None
        and len(rollout.answer) <= 40
        and rollout.reward >= 0.1
    }
    hits = {
        name: [_example(group, rollout) for rollout in rollouts if counts(rollout)]
        for name, (_, counts) in SHARES.items()
    }
    # Where there is no one gold answer, the question stands for it.
    gold = f"#{number}" if group.gold_answer is None else str(group.gold_answer)
    gold = gold.strip().casefold()[:EXAMPLE_CHARS]
    is_varied = len(rollouts) < 2 or has_variance(rewards)
    return _Facts(len(rollouts), fmean(rewards), is_varied, gold, rewarded, hits)


# -- the conditions --------------------------------------------------------------------

Window = Sequence[_Facts]
Ring = tuple[str, Sequence[str]]
"""A sentence, and examples of it."""


def _repeated_answer(window: Window) -> Ring | None:
    counts = Counter(answer for facts in window for answer in facts.rewarded)
    answer, count = next(iter(counts.most_common(1)), ("", 0))
    rewarded = [facts for facts in window if answer in facts.rewarded]
    of_gold = {facts.gold: facts.rewarded[answer] for facts in rewarded}
    # A yes or no that is right half the time has one gold answer.
    if count < max(FEWEST_GROUPS, math.ceil(len(window) / 2)) or len(of_gold) < 8:
        return None
    sentence = (
        f"the answer {answer!r} was rewarded in {count} of the last {len(window)}"
        f" questions, with {len(of_gold)} reference answers"
    )
    return sentence, list(of_gold.values())


def _no_variance(window: Window) -> Ring | None:
    if len(window) < WINDOW or any(facts.has_variance for facts in window):
        return None
    mean = f"now {window[-1].mean_reward:.2f}"
    return f"{WINDOW} groups in a row of equal rewards, {mean}", []


def _share(name: str, window: Window) -> Ring | None:
    hits = [facts.hits[name] for facts in window if facts.hits[name]]
    total = sum(facts.rollouts for facts in window)
    share = sum(map(len, hits)) / total
    # One item of which every answer hangs its scorer is 5 % of a window already.
    if len(window) < FEWEST_GROUPS or len(hits) < 3 or share < SHARES[name][0]:
        return None
    sentence = f"{name} in {share:.0%} of the last {total} rollouts"
    return sentence, [examples[-1] for examples in reversed(hits)]


OF_SHARES = {name: partial(_share, name) for name in SHARES}
OF_TASKS: dict[str, Callable[[Window], Ring | None]] = {
    "repeated_answer": _repeated_answer,
    "no_variance": _no_variance,
    **OF_SHARES,
}
"""Each alarm, to what rings it in the newest groups of a task; some ring for all."""


class Alarms:
    """Watches the groups of one run; `counts` has how often each alarm rang."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter(dict.fromkeys(OF_TASKS, 0))
        self._reported = 0
        self._groups: Counter[str] = Counter()
        self._windows = defaultdict[str, deque[_Facts]](lambda: deque(maxlen=WINDOW))
        self._rows: dict[tuple[str, str], list[Any]] = {}
        self._quiet_until: dict[tuple[str, str], int] = {}

    def take(self, group: Group) -> list[str]:
        """Take in a scored group.

        Returns:
            Lines for the log: the first, second, fourth ... time that each alarm rings.
        """
        facts, lines = _facts_of(group, self._groups[group.task]), list[str]()
        for place, conditions in ((group.task, OF_TASKS), (ALL, OF_SHARES)):
            self._windows[place].append(facts)
            self._groups[place] += 1
            for name, condition in conditions.items():
                if self._groups[place] >= self._quiet_until.get((name, place), 0):
                    ring = condition(self._windows[place])
                    lines += [] if ring is None else self._ring(name, place, *ring)
        return lines

    def _ring(
        self, name: str, place: str, sentence: str, examples: Sequence[str]
    ) -> Iterator[str]:
        """Count an alarm; yield the line worth saying."""
        self._quiet_until[name, place] = self._groups[place] + WINDOW
        _, _, count, _, older = self._rows.get((name, place), (name, place, 0, "", []))
        newest = [*examples, *older][:MOST_EXAMPLES]
        self._rows[name, place] = [name, place, count + 1, sentence, newest]
        self.counts[name] += 1
        if is_worth_a_line(count := self.counts[name]):
            yield f"alarm {name}: {place}: {sentence} (alarm {count} of this kind)"

    def news(self) -> list[list[Any]]:
        """Return a row for each alarm and task that rang, the commonest first.

        Its name, its task, how often it rang, its newest sentence, and its newest
        examples: answer, gold answer, score, outcome and seed. [] if none has rung
        since the last call.
        """
        before, self._reported = self._reported, self.counts.total()
        if before == self._reported:
            return []
        return sorted(self._rows.values(), key=lambda row: -row[2])
