"""The answers in completions, and their scores from worker processes.

One call of a worker carries all answers of a group. An answer that uses up the CPU time
of its deadline is a 0 with `timeout`, one that ends two workers a 0 with
`scorer_error`. Whatever else fails gives no score, which must never count as a wrong
answer.

An `Item` is scored by task and parameters, and a dataset of the library by its class
and its own config; any other object with `score_answer(answer, entry)` in place.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
import os
import pickle
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rg_env.errors import RunError, shown, unexpected
from rg_env.executor import in_thread
from rg_env.library import worker_jobs
from rg_env.library.datasets import ANSWER_DEADLINE_S
from rg_env.library.installed_library import explained
from rg_env.library.registry import TASKS
from rg_env.logs import is_sampled
from rg_env.reward.extraction import AnswerFormat, Extraction, extract_answer
from rg_env.reward.score import DEFAULT_RULES, UNSCORED, Score, ScoringRules, read_rows
from rg_env.stream.item import Item, LostItemError, shared_pool
from rg_env.task_rules.table import RUNNING
from rg_env.workers.pool_errors import (
    DeadlineExceededError,
    PoolError,
    PreloadError,
    WorkerDiedError,
    WorkerLostError,
)
from rg_env.workers.worker_pool import Trust, WorkerPool, run_blocking

logger = logging.getLogger(__name__)

MOST_ANSWERS = 256  # of one call of a worker
MAX_REPLY_BYTES = 2**16  # with their scores, some forty bytes each

FEW_CHARS, FEW_SIGNS = 2**18, 2**9  # searched in place, in half a millisecond

UNMATCHED = "unmatched"
"""Outcome without a value, as `UNSCORED`: the item is not made, or is another."""


class ScoringUnavailableError(RunError):
    """The workers gave no scores; the group has none, which is not zeros."""


def _extracted(
    texts: Sequence[str], opened: Sequence[bool], answer_format: AnswerFormat
) -> list[Extraction]:
    extract = functools.partial(extract_answer, answer_format=answer_format)
    pairs = zip(texts, opened, strict=True)
    return [extract(text, thinking_open=is_open) for text, is_open in pairs]


async def extract_in_time(
    texts: Sequence[str],
    thinking_open: Sequence[bool],
    answer_format: AnswerFormat = "tags",
) -> list[Extraction]:
    """Return the answers of completions, or why there is none, both of shape (G,)."""
    is_short = sum(map(len, texts)) <= FEW_CHARS
    signs = "<" if answer_format == "tags" else "<\\{}"
    if is_short and sum(t.count(sign) for t in texts for sign in signs) <= FEW_SIGNS:
        return _extracted(texts, thinking_open, answer_format)
    return await in_thread(_extracted, texts, thinking_open, answer_format)


# -- scores of answers -----------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class GroupScorer:
    """Scores groups of answers in a worker pool."""

    pool: WorkerPool
    deadline_s: float = ANSWER_DEADLINE_S
    rules: ScoringRules = DEFAULT_RULES

    def score_blocking(
        self, dataset: Any, entry: Mapping[str, Any], answer: str
    ) -> Score:
        """Score one answer and wait for it; raises as `score_group`."""

        async def scored(pool: WorkerPool) -> Score:
            scorer = dataclasses.replace(self, pool=pool)
            (score,) = await scorer.score_group(dataset, entry, [answer])
            return score

        return run_blocking(scored, self.pool)

    async def score_group(
        self, dataset: Any, entry: Mapping[str, Any], answers: Sequence[str]
    ) -> list[Score]:
        """Score the answers of one group, each text once.

        Raises:
            ScoringUnavailableError: The pool gave no score for one of them.
        """
        scores = await self.score_each(dataset, entry, answers)
        for score in scores:
            if isinstance(score, ScoringUnavailableError):
                raise score
        return [score for score in scores if isinstance(score, Score)]

    async def score_each(
        self, dataset: Any, entry: Mapping[str, Any], answers: Sequence[str]
    ) -> list[Score | ScoringUnavailableError]:
        """Do the same, with an error in place of each missing score.

        After the first missing score, the remaining answers are not scored.
        """
        is_library = type(dataset).__module__.startswith("reasoning_gym.")
        if not isinstance(dataset, Item) and not is_library:  # as of a test
            here = self.rules.scoring("", entry, dataset.score_answer)
            return list(map(here, answers))
        # Megabytes would cost more to send than to refuse.
        long = {a for a in answers if self.rules.too_long(a, entry)}
        by_answer = {answer: Score(0.0, "rejected", answer) for answer in long}
        sent = [a for a in dict.fromkeys(answers) if a not in long]
        firsts = range(0, len(sent), MOST_ANSWERS)
        portions = [sent[first : first + MOST_ANSWERS] for first in firsts]
        none = ScoringUnavailableError("no score from the worker pool")
        while portions:
            portion = portions.pop(0)
            try:
                scores = await self._scored(dataset, entry, portion)
            except PoolError as error:
                is_late = isinstance(error, DeadlineExceededError)
                is_its_fault = is_late or isinstance(error, WorkerDiedError)
                is_lost = isinstance(error, WorkerLostError)
                # One by one, the fault costs only its own answer.
                if len(portion) > 1 and (is_its_fault or is_lost):
                    portions[:0] = [[answer] for answer in portion]
                    continue
                if not is_its_fault:
                    none = ScoringUnavailableError(f"{none}: {error}")
                    none.__cause__ = error
                    break
                outcome = "timeout" if is_late else "scorer_error"
                scores = [Score(0.0, outcome, portion[0])]
            by_answer.update(zip(portion, scores, strict=True))
        return [by_answer.get(answer, none) for answer in answers]

    async def _scored(
        self, dataset: Any, entry: Mapping[str, Any], answers: list[str]
    ) -> list[Score]:
        params: Any
        if isinstance(dataset, Item):
            task, params = dataset.task, dict(dataset.params)
            # Nobody knows what the scorer of a user's own task or of a mixture does.
            may_run = task in RUNNING or task not in TASKS
        else:
            cls = type(dataset)
            task = f"{cls.__module__}:{cls.__qualname__}"
            params = pickle.dumps(dataset.config)
            may_run = True  # nobody knows of a config which task it is of
        how = (task, params, entry)
        # Builds the dataset, and loads what scorers load at first, before the deadline
        # runs.
        prepare = functools.partial(worker_jobs.prepare_scores, *how, self.rules)
        read = functools.partial(read_rows, answers)
        trust = Trust(MAX_REPLY_BYTES, read, brief=may_run, prepare=prepare)
        call: Any = (worker_jobs.score_answers, *how, answers, self.rules)
        scores: list[Score]
        scores = await self.pool.run(*call, deadline_s=self.deadline_s, trust=trust)
        return scores


# -- results of completions, without the framework -------------------------------------


@dataclasses.dataclass(frozen=True)
class Result:
    """The result for one completion.

    Attributes:
        value: Score in [0, 1]; None if there is no score, which does not mean 0.
        outcome: One word: `right`, `partial`, `wrong`, ...; without a value `unscored`
            or `unmatched`.
        answer: The extracted answer, None where there was none.
        reason: Why there is no value, "" where there is one.
    """

    value: float | None
    outcome: str
    answer: str | None
    reason: str = ""


_counts: Counter[str] = Counter()
os.register_at_fork(after_in_child=_counts.clear)


def outcome_counts() -> dict[str, int]:
    """Return how many completions this process has scored, by outcome."""
    return dict(_counts)


def score(
    item: Item, completions: Sequence[str], *, thinking_open: bool = False
) -> list[Result]:
    """Score whole completions of one item; waits for a worker of this process.

    Args:
        item: From `Tasks`, or from JSON.
        completions: What the model wrote, of any length and content, shape (G,).
        thinking_open: Whether the prompt itself ended with `<think>`, as some chat
            templates have it.

    Returns:
        The results in the same order, shape (G,).

    Raises:
        LibraryError: reasoning-gym cannot be used.
        SettingError: A module of a user's own tasks cannot be used.
        TypeError: The completions are no sequence of texts.
    """
    extractions = _extracted(*_given(item, completions, thinking_open))
    results = functools.partial(_results, item=item, extractions=extractions)
    return run_blocking(results, shared_pool(item.task_modules))


async def score_async(
    item: Item, completions: Sequence[str], *, thinking_open: bool = False
) -> list[Result]:
    """The same as `score`, for an event loop, which is never blocked."""
    extractions = await extract_in_time(*_given(item, completions, thinking_open))
    return await _results(shared_pool(item.task_modules), item, extractions)


def _given(
    item: Item, completions: Sequence[str], thinking_open: bool
) -> tuple[list[str], list[bool], AnswerFormat]:
    if not isinstance(item, Item):
        raise TypeError(f"item: {unexpected(item, 'an Item')}")
    texts = list(completions)
    if isinstance(completions, str) or not all(isinstance(t, str) for t in texts):
        raise TypeError(f"completions are a list of texts, found {shown(completions)}")
    return texts, [thinking_open] * len(texts), item.answer_format


async def _results(
    pool: WorkerPool, item: Item, extractions: Sequence[Extraction]
) -> list[Result]:
    answers = [e.answer for e in extractions if e.answer is not None]
    scores: list[Score | RunError]
    try:
        # Without an item there is no score, whatever a completion says.
        entry = await item.entry_from(pool) if extractions else {}
        each = iter(await GroupScorer(pool).score_each(item, entry, answers))
        scores = [
            next(each) if e.failure is None else Score(0.0, e.failure, None)
            for e in extractions
        ]
    except (LostItemError, PoolError) as error:
        scores = [error] * len(extractions)
    results = list(map(_result, extractions, scores))
    none = [result.reason for result in results if result.value is None]
    _counts.update([result.outcome for result in results])  # at once, for threads
    count = _counts[UNSCORED] + _counts[UNMATCHED]
    if none and is_sampled(count, len(none)):
        logger.warning("%d completions without a score so far: %s", count, none[0])
    return results


def _result(extraction: Extraction, score: Score | RunError) -> Result:
    if isinstance(score, Score):
        return Result(score.value, score.outcome, score.answer)
    if isinstance(score, LostItemError):
        return Result(None, UNMATCHED, extraction.answer, str(score))
    is_pool = isinstance(score, PoolError)
    error = score if is_pool or score.__cause__ is None else score.__cause__
    # A process that was killed or is slow may start the next time; else none ever will.
    if isinstance(error, PreloadError) and (error.kind or "status" in error.message):
        raise explained(error) from error
    return Result(None, UNSCORED, extraction.answer, str(error))
