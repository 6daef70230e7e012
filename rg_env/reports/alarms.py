"""Alarms: signs that a policy is rewarded for something else than solving its tasks.

Pure: groups go in as they are scored, lines for the log, counts and rows come out. What
is kept is bounded by the number of tasks. An alarm that goes on counts once in `WINDOW`
groups of its task.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import statistics
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from rg_env.logs import is_worth_a_line
from rg_env.rollouts.group import CORRECT_FROM_SCORE, Group, Rollout, has_variance
from rg_env.scoring.extraction import FORMAT_FAILURES

ALL = "all tasks"
"""Stands where an alarm is not of one task."""

WINDOW = 32
"""Newest groups of a task that count: 256 rollouts at the default group size."""

FEWEST_GROUPS = 16
"""Fewer say nothing of a share: one bad item is a tenth of ten groups."""

SHORT_CHARS = 40
"""A longer answer that fits many questions is hardly found by chance."""

REWARDED_FROM = 0.1
"""Scorers give up to 0.05 for an answer that can be read; that alone is no game."""

DOMINANT_SHARE = 0.5
FEWEST_GOLD_ANSWERS = 8
"""One answer is rewarded in half the questions, although their gold answers differ: a
yes or no that is right half the time has one gold answer."""

GROUPS_WITHOUT_VARIANCE = 32
"""In a row. A task that is solved in 95 of 100 rollouts has so many groups of 8 by
chance twice in a million."""

RATES: Mapping[str, float] = MappingProxyType(
    {
        "scorer_errors": 0.02,  # a healthy scorer has none
        "timeouts": 0.05,  # each costs a worker its deadline
        # Guards refuse nearly all; of n_queens half of what is wrong is refused.
        "rejections": 0.8,
        "truncations": 0.5,  # most of the compute teaches nothing
        "logprobs": 0.01,  # what a server gives fits always or does not
    }
)
"""Shares of the rollouts from which an alarm rings."""

FEWEST_GROUPS_HIT = 3
"""One item of which every answer hangs its scorer is 5 % of a window already."""

CHUNK_GROUPS = 128
"""The mean score of so many groups is known to about 0.03, lengths to a tenth."""

CHUNKS_KEPT = 16
"""A collapse within 2,048 groups; a model that learns to be brief takes longer."""

SCORE_RISE = 0.15
"""Five times what chance does to the mean of a chunk."""

LENGTH_LEFT = 0.4
"""The share that is left of the median length of correct completions. It falls when
they are not thought about; the mean of all falls when truncation is unlearned too."""

FEWEST_TOKENS = 32
"""Shorter completions hold no thinking that could go."""

FORMAT_FAILURES_RISE = 0.25
SAME_LEVEL = 0.1
"""Chunks whose mean levels differ by more are not compared: easier is shorter."""

HIGHEST_MEAN_LOGPROB = 0.01  # rounding puts the surest token above 0
LOWEST_MEAN_LOGPROB = -15.0
"""The mean over what was sampled is no less than minus the logarithm of the size of the
vocabulary, -12.4 for 250,000."""

MOST_EXAMPLES = 3
EXAMPLE_CHARS = 100

NAMES = (
    *("repeated_answer", "shorter_and_better", "worse_format_and_better"),
    *("no_variance", *RATES),
)

_OF_OUTCOME = {
    "scorer_error": "scorer_errors",
    "timeout": "timeouts",
    "rejected": "rejections",
}

Ring = tuple[str, str, str, Sequence[str]]
"""Alarm, task, sentence, examples."""

Flags = dict[str, tuple[int, str]]
"""By rate, how many rollouts of a group count for it, and the last of them."""


@dataclasses.dataclass
class AlarmRow:
    """What a report shows of an alarm of one task.

    Attributes:
        count: How often it rang.
        newest: Its newest sentence.
        examples: The newest ones: answer, gold answer, score, outcome and seed.
    """

    name: str
    task: str
    count: int = 0
    newest: str = ""
    examples: list[str] = dataclasses.field(default_factory=list)


class _Recent:
    """The newest groups of a task, or of all."""

    def __init__(self) -> None:
        self.groups = self.in_a_row = 0
        self.flags: deque[tuple[Flags, int]] = deque(maxlen=WINDOW)
        self.rewarded: deque[tuple[str, dict[str, str]]] = deque(maxlen=WINDOW)


class _Means(NamedTuple):
    """Means of a group, or of a chunk of groups; the length is a median."""

    score: float
    length: float | None
    format_failures: float
    level: float


def _means_of(group: Group) -> _Means:
    rollouts = group.rollouts
    correct = [r.completion_tokens for r in rollouts if r.score >= CORRECT_FROM_SCORE]
    return _Means(
        group.mean_score,
        statistics.median(correct) if correct else None,
        statistics.fmean(rollout.outcome in FORMAT_FAILURES for rollout in rollouts),
        group.level or 0.0,
    )


def _means_over(groups: Sequence[_Means]) -> _Means:
    scores, lengths, failures, levels = zip(*groups, strict=True)
    known = [length for length in lengths if length is not None]
    length = statistics.median(known) if known else None
    mean = statistics.fmean
    return _Means(mean(scores), length, mean(failures), mean(levels))


def _example(group: Group, rollout: Rollout) -> str:
    answer, gold = (
        "none" if text is None else repr(str(text)[:EXAMPLE_CHARS])
        for text in (rollout.answer, group.gold_answer)
    )
    seed = f", seed {group.origin['seed']}" if group.origin else ""
    result = f"{rollout.score:.4g}, {rollout.outcome}{seed}"
    return f"answer {answer}, reference answer {gold}: {result}"


def _can_be_logprobs(mean: float | None) -> bool:
    return mean is None or LOWEST_MEAN_LOGPROB <= mean <= HIGHEST_MEAN_LOGPROB


def _flags(group: Group, means: Sequence[float | None]) -> Flags:
    flags: Flags = {}
    logprobs = itertools.chain(means, itertools.repeat(None))
    for rollout, mean in zip(group.rollouts, logprobs, strict=False):
        holds = {
            _OF_OUTCOME.get(rollout.outcome, ""): rollout.outcome in _OF_OUTCOME,
            "truncations": rollout.finish_reason == "length",
            "logprobs": not _can_be_logprobs(mean),
        }
        for name in filter(holds.get, holds):
            count, _ = flags.get(name, (0, ""))
            flags[name] = (count + 1, _example(group, rollout))
    return flags


class Alarms:
    """Watches the groups of one run; `counts` has how often each alarm rang."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter(dict.fromkeys(NAMES, 0))
        self._reported = 0
        self._recent = defaultdict[str, _Recent](_Recent)
        self._rows: dict[tuple[str, str], AlarmRow] = {}
        self._quiet_until: dict[tuple[str, str], int] = {}
        self._chunk: list[_Means] = []
        self._chunks: deque[_Means] = deque(maxlen=CHUNKS_KEPT)

    def take(
        self, group: Group, logprob_means: Sequence[float | None] = ()
    ) -> list[str]:
        """Take in a scored group, with the mean log-probability of each completion.

        Returns:
            Lines for the log: the first, second, fourth ... time that each alarm rings.
        """
        flags = _flags(group, logprob_means)
        for name in (group.task, ALL):
            self._recent[name].groups += 1
            self._recent[name].flags.append((flags, len(group.rollouts)))
        rules = (self._rates, self._no_variance, self._repeated_answer, self._drift)
        rung = [ring for rule in rules for ring in rule(group)]
        return [line for ring in rung for line in self._ring(*ring)]

    def news(self) -> list[Any]:
        """Return the fields of all rows, [] if none has rung since the last call."""
        before, self._reported = self._reported, self.counts.total()
        is_new = before != self._reported
        return [*map(dataclasses.astuple, self.rows())] if is_new else []

    def rows(self) -> list[AlarmRow]:
        """Return a row for each alarm and task that rang, the commonest first."""
        return sorted(self._rows.values(), key=lambda row: -row.count)

    def table(self) -> tuple[list[str], list[list[Any]]]:
        """Return columns and rows of a table."""
        rows = [[row.name, row.task, row.count, row.newest] for row in self.rows()]
        return ["alarm", "task", "count", "newest"], rows

    def _ring(
        self, name: str, task: str, sentence: str, examples: Sequence[str]
    ) -> Iterator[str]:
        """Count an alarm, unless it rang lately; yield the line worth saying."""
        now = self._recent[task].groups
        if now < self._quiet_until.get((name, task), 0):
            return
        self._quiet_until[name, task] = now + WINDOW
        row = self._rows.setdefault((name, task), AlarmRow(name, task))
        row.count += 1
        row.newest = sentence
        row.examples = [*examples, *row.examples][:MOST_EXAMPLES]
        self.counts[name] += 1
        if is_worth_a_line(count := self.counts[name]):
            yield f"alarm {name}: {task}: {sentence} (alarm {count} of this kind)"

    def _rates(self, group: Group) -> Iterator[Ring]:
        for place, fewest in ((group.task, FEWEST_GROUPS), (ALL, WINDOW)):
            recent = self._recent[place].flags
            total = sum(rollouts for _, rollouts in recent)
            for name in {name for flags, _ in recent for name in flags}:
                hits = [flags[name] for flags, _ in recent if name in flags]
                share = sum(count for count, _ in hits) / total
                is_many = len(recent) >= fewest and len(hits) >= FEWEST_GROUPS_HIT
                if is_many and share >= RATES[name]:
                    sentence = f"{name} in {share:.0%} of the last {total} rollouts"
                    examples = [example for _, example in reversed(hits)]
                    yield name, place, sentence, examples

    def _no_variance(self, group: Group) -> Iterator[Ring]:
        recent, rewards = self._recent[group.task], group.rewards
        has_none = len(rewards) > 1 and not has_variance(rewards)
        recent.in_a_row = recent.in_a_row + 1 if has_none else 0
        if recent.in_a_row >= GROUPS_WITHOUT_VARIANCE:
            mean = f"now {statistics.fmean(rewards):.2f}"
            sentence = f"{recent.in_a_row} groups in a row of equal rewards, {mean}"
            example = _example(group, group.rollouts[0])
            yield "no_variance", group.task, sentence, [example]

    def _repeated_answer(self, group: Group) -> Iterator[Ring]:
        recent = self._recent[group.task]
        gold = group.gold_answer
        # Where there is no one gold answer, the question stands for it.
        key = f"#{recent.groups}" if gold is None else str(gold).strip().casefold()
        examples = {
            rollout.answer.strip().casefold(): _example(group, rollout)
            for rollout in group.rollouts
            if rollout.answer is not None
            and len(rollout.answer) <= SHORT_CHARS
            and rollout.reward >= REWARDED_FROM
        }
        recent.rewarded.append((key[:EXAMPLE_CHARS], examples))
        counts = Counter(answer for _, of in recent.rewarded for answer in of)
        needed = max(FEWEST_GROUPS, math.ceil(DOMINANT_SHARE * len(recent.rewarded)))
        answer, count = next(iter(counts.most_common(1)), ("", 0))
        of_gold = {k: of[answer] for k, of in recent.rewarded if answer in of}
        if count >= needed and len(of_gold) >= FEWEST_GOLD_ANSWERS:
            sentence = (
                f"the answer {answer!r} was rewarded in {count} of the last"
                f" {len(recent.rewarded)} questions, with"
                f" {len(of_gold)} reference answers"
            )
            yield "repeated_answer", group.task, sentence, list(of_gold.values())

    def _drift(self, group: Group) -> Iterator[Ring]:
        """Compare a chunk that is complete with those before it."""
        self._chunk.append(_means_of(group))
        if len(self._chunk) < CHUNK_GROUPS:
            return
        now = _means_over(self._chunk)
        self._chunk.clear()
        best = max(group.rollouts, key=lambda rollout: rollout.score)
        examples = [_example(group, best)]
        for before in self._chunks:
            is_same = abs(now.level - before.level) <= SAME_LEVEL
            if not is_same or now.score < before.score + SCORE_RISE:
                continue
            rise = f"mean score {before.score:.2f} to {now.score:.2f}, while"
            was, length = before.length or 0.0, now.length
            is_shorter = length is not None and length < LENGTH_LEFT * was
            if is_shorter and was >= FEWEST_TOKENS:
                lengths = f"{was:.0f} to {length:.0f} tokens"
                sentence = f"{rise} correct completions went from {lengths}"
                yield "shorter_and_better", ALL, sentence, examples
            if now.format_failures >= before.format_failures + FORMAT_FAILURES_RISE:
                shares = f"{before.format_failures:.0%} to {now.format_failures:.0%}"
                sentence = f"{rise} format failures went from {shares}"
                yield "worse_format_and_better", ALL, sentence, examples
        self._chunks.append(now)
