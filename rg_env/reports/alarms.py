"""Alarms: signs that a policy is rewarded for something else than solving its tasks.

Pure: groups go in as they are scored, lines for the log, counts and rows come out. What
is kept is bounded by the number of tasks. An alarm that goes on counts once in `WINDOW`
groups of its task.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean, median
from types import MappingProxyType
from typing import Any, NamedTuple

from rg_env.logs import is_worth_a_line
from rg_env.rollouts.group import CORRECT_FROM_SCORE, Group, Rollout, has_variance
from rg_env.scoring.extraction import FORMAT_FAILURES

ALL = "all tasks"
"""Stands where an alarm is not of one task."""

WINDOW = 32
"""Newest groups of a task that count: 256 rollouts at the default group size. A task
that is solved in 95 of 100 rollouts has so many groups of 8 without variance by chance
twice in a million."""

FEWEST_GROUPS = 16
"""Fewer say nothing of a share: one bad item is a tenth of ten groups."""

RATES: Mapping[str, tuple[float, Callable[[Rollout, float], bool]]]
RATES = MappingProxyType(
    {
        # A healthy scorer has none.
        "scorer_errors": (0.02, lambda rollout, _: rollout.outcome == "scorer_error"),
        # Each costs a worker its deadline.
        "timeouts": (0.05, lambda rollout, _: rollout.outcome == "timeout"),
        # Guards refuse nearly all; of n_queens half of what is wrong is refused.
        "rejections": (0.8, lambda rollout, _: rollout.outcome == "rejected"),
        # Most of the compute teaches nothing.
        "truncations": (0.5, lambda rollout, _: rollout.finish_reason == "length"),
        # What a server gives fits always or does not. The mean over what was sampled is
        # no less than minus the logarithm of the size of the vocabulary, -12.4 for
        # 250,000; rounding puts the surest token above 0.
        "logprobs": (0.01, lambda _, logprob: not -15.0 <= logprob <= 0.01),
    }
)
"""Shares of the rollouts from which an alarm rings, and what counts for it: a rollout,
and the mean log-probability of its completion."""

NAMES = (
    *("repeated_answer", "shorter_and_better", "worse_format_and_better"),
    *("no_variance", *RATES),
)

CHUNK_GROUPS = 128
"""The mean score of so many groups is known to about 0.03, lengths to a tenth."""

CHUNKS_KEPT = 16
"""A collapse within 2,048 groups; a model that learns to be brief takes longer."""

MOST_EXAMPLES = 3
EXAMPLE_CHARS = 100

Ring = tuple[str, str, str, Sequence[str]]
"""Alarm, task, sentence, examples."""


class _Facts(NamedTuple):
    """What a window keeps of a group; `rewarded` has the example of each answer."""

    rollouts: int
    has_variance: bool
    hits: Mapping[str, Sequence[str]]
    gold: str
    rewarded: Mapping[str, str]


class _Means(NamedTuple):
    """Means over a group or a chunk of groups.

    The length is the median of correct completions, 0 without one: it falls when they
    are not thought about; that of all falls when truncation is unlearned too.
    """

    score: float
    length: float
    format_failures: float
    level: float


def _example(group: Group, rollout: Rollout) -> str:
    answer, gold = (
        "none" if text is None else repr(str(text)[:EXAMPLE_CHARS])
        for text in (rollout.answer, group.gold_answer)
    )
    seed = f", seed {group.origin['seed']}" if group.origin else ""
    result = f"{rollout.score:.4g}, {rollout.outcome}{seed}"
    return f"answer {answer}, reference answer {gold}: {result}"


def _facts_of(group: Group, number: int, logprobs: Sequence[float | None]) -> _Facts:
    hits, rewarded = defaultdict[str, list[str]](list), {}
    for rollout, logprob in itertools.zip_longest(group.rollouts, logprobs):
        for name, (_, counts) in RATES.items():
            if counts(rollout, 0.0 if logprob is None else logprob):
                hits[name].append(_example(group, rollout))
        answer = rollout.answer
        # A longer answer that fits many questions is hardly found by chance. Scorers
        # give up to 0.05 for an answer that can be read; that alone is no game.
        if answer is not None and len(answer) <= 40 and rollout.reward >= 0.1:
            rewarded[answer.strip().casefold()] = _example(group, rollout)
    # Where there is no one gold answer, the question stands for it.
    gold = f"#{number}" if group.gold_answer is None else str(group.gold_answer)
    is_varied = len(group.rollouts) < 2 or has_variance(group.rewards)
    key = gold.strip().casefold()[:EXAMPLE_CHARS]
    return _Facts(len(group.rollouts), is_varied, hits, key, rewarded)


def _means_of(group: Group) -> _Means:
    rollouts = group.rollouts
    correct = [r.completion_tokens for r in rollouts if r.score >= CORRECT_FROM_SCORE]
    failures = fmean(rollout.outcome in FORMAT_FAILURES for rollout in rollouts)
    return _Means(group.mean_score, median(correct or [0]), failures, group.level or 0)


def _means_over(groups: Sequence[_Means]) -> _Means:
    scores, lengths, failures, levels = zip(*groups, strict=True)
    length = median([*filter(None, lengths)] or [0])
    return _Means(fmean(scores), length, fmean(failures), fmean(levels))


# -- the conditions --------------------------------------------------------------------


def _rates(place: str, window: Sequence[_Facts], fewest: int) -> Iterator[Ring]:
    total = sum(facts.rollouts for facts in window)
    for name, (least, _) in RATES.items():
        hits = [facts.hits[name] for facts in window if name in facts.hits]
        share = sum(map(len, hits)) / total
        # One item of which every answer hangs its scorer is 5 % of a window already.
        if len(window) >= fewest and len(hits) >= 3 and share >= least:
            sentence = f"{name} in {share:.0%} of the last {total} rollouts"
            yield name, place, sentence, [of[-1] for of in reversed(hits)]


def _no_variance(group: Group, window: Sequence[_Facts]) -> Iterator[Ring]:
    if len(window) == WINDOW and not any(facts.has_variance for facts in window):
        mean = f"now {fmean(group.rewards):.2f}"
        sentence = f"{WINDOW} groups in a row of equal rewards, {mean}"
        example = _example(group, group.rollouts[0])
        yield "no_variance", group.task, sentence, [example]


def _repeated_answer(task: str, window: Sequence[_Facts]) -> Iterator[Ring]:
    counts = Counter(answer for facts in window for answer in facts.rewarded)
    answer, count = next(iter(counts.most_common(1)), ("", 0))
    rewarded = [facts for facts in window if answer in facts.rewarded]
    of_gold = {facts.gold: facts.rewarded[answer] for facts in rewarded}
    # A yes or no that is right half the time has one gold answer.
    needed = max(FEWEST_GROUPS, math.ceil(len(window) / 2))
    if count >= needed and len(of_gold) >= 8:
        sentence = (
            f"the answer {answer!r} was rewarded in {count} of the last"
            f" {len(window)} questions, with {len(of_gold)} reference answers"
        )
        yield "repeated_answer", task, sentence, list(of_gold.values())


def _drift(before: _Means, now: _Means, examples: Sequence[str]) -> Iterator[Ring]:
    """Compare a chunk with one before it.

    Chunks of other levels are not compared, as easier is shorter. A rise of the score
    by 0.15 is five times what chance does to the mean of a chunk.
    """
    if abs(now.level - before.level) > 0.1 or now.score < before.score + 0.15:
        return
    rise = f"mean score {before.score:.2f} to {now.score:.2f}, while"
    # Completions of fewer tokens hold no thinking that could go.
    if before.length >= 32 and 0 < now.length < 0.4 * before.length:
        lengths = f"{before.length:.0f} to {now.length:.0f} tokens"
        sentence = f"{rise} correct completions went from {lengths}"
        yield "shorter_and_better", ALL, sentence, examples
    if now.format_failures >= before.format_failures + 0.25:
        shares = f"{before.format_failures:.0%} to {now.format_failures:.0%}"
        sentence = f"{rise} format failures went from {shares}"
        yield "worse_format_and_better", ALL, sentence, examples


class Alarms:
    """Watches the groups of one run; `counts` has how often each alarm rang."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter(dict.fromkeys(NAMES, 0))
        self._reported = 0
        self._groups: Counter[str] = Counter()
        self._windows = defaultdict[str, deque[_Facts]](lambda: deque(maxlen=WINDOW))
        self._rows: dict[tuple[str, str], list[Any]] = {}
        self._quiet_until: dict[tuple[str, str], int] = {}
        self._chunk: list[_Means] = []
        self._chunks: deque[_Means] = deque(maxlen=CHUNKS_KEPT)

    def take(self, group: Group, logprobs: Sequence[float | None] = ()) -> list[str]:
        """Take in a scored group, with the mean log-probability of each completion.

        Returns:
            Lines for the log: the first, second, fourth ... time that each alarm rings.
        """
        task = group.task
        facts = _facts_of(group, self._groups[task], logprobs)
        for place in (task, ALL):
            self._groups[place] += 1
            self._windows[place].append(facts)
        window = self._windows[task]
        rung = [
            *_rates(task, window, FEWEST_GROUPS),
            *_rates(ALL, self._windows[ALL], WINDOW),
            *_no_variance(group, window),
            *_repeated_answer(task, window),
        ]
        self._chunk.append(_means_of(group))
        if len(self._chunk) == CHUNK_GROUPS:
            now = _means_over(self._chunk)
            best = max(group.rollouts, key=lambda rollout: rollout.score)
            for before in self._chunks:
                rung += _drift(before, now, [_example(group, best)])
            self._chunks.append(now)
            self._chunk.clear()
        return [line for ring in rung for line in self._ring(*ring)]

    def _ring(
        self, name: str, task: str, sentence: str, examples: Sequence[str]
    ) -> Iterator[str]:
        """Count an alarm, unless it rang lately; yield the line worth saying."""
        now = self._groups[task]
        if now < self._quiet_until.get((name, task), 0):
            return
        self._quiet_until[name, task] = now + WINDOW
        _, _, count, _, older = self._rows.get((name, task), (name, task, 0, "", []))
        newest = [*examples, *older][:MOST_EXAMPLES]
        self._rows[name, task] = [name, task, count + 1, sentence, newest]
        self.counts[name] += 1
        if is_worth_a_line(count := self.counts[name]):
            yield f"alarm {name}: {task}: {sentence} (alarm {count} of this kind)"

    def rows(self) -> list[list[Any]]:
        """Return a row for each alarm and task that rang, the commonest first.

        Its name, its task, how often it rang, its newest sentence, and its newest
        examples: answer, gold answer, score, outcome and seed.
        """
        return sorted(self._rows.values(), key=lambda row: -row[2])

    def news(self) -> list[list[Any]]:
        """Return all rows, [] if none has rung since the last call."""
        before, self._reported = self._reported, self.counts.total()
        return self.rows() if before != self._reported else []

    def table(self) -> tuple[list[str], list[list[Any]]]:
        """Return columns and rows of a table."""
        return ["alarm", "task", "count", "newest"], [row[:4] for row in self.rows()]
