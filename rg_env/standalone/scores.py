"""Scores of completions, without the framework.

A completion is scored as in a run: its answer is extracted, checked by the guard,
normalized, and scored in both formats, in a sandboxed worker with a deadline. A result
without a value means that the machine failed; it must never count as a wrong answer.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rg_env.errors import RunError, shown
from rg_env.items.group_scorer import (
    GroupScorer,
    extract_answers,
    extract_in_time,
    shared_pool,
)
from rg_env.items.installed_library import explained
from rg_env.logs import is_worth_a_line
from rg_env.scoring.extraction import Extraction
from rg_env.scoring.score import UNSCORED, Score
from rg_env.standalone.item import Item, LostItemError
from rg_env.workers.pool_errors import PoolError, PreloadError
from rg_env.workers.worker_pool import WorkerPool, run_blocking

logger = logging.getLogger(__name__)

UNMATCHED = "unmatched"
"""Outcome without a value, as `UNSCORED`: the item is not made, or is another."""


@dataclasses.dataclass(frozen=True)
class Result:
    """The result for one completion.

    Attributes:
        value: Score in [0, 1]; None if there is no score, which does not mean 0.
        outcome: One word: `right`, `partial`, `wrong`, `rejected`, `timeout`, ... and
            the format failures; without a value `unscored` or `unmatched`.
        answer: The extracted answer, None where there was none.
        reason: Why there is no value, "" where there is one.
    """

    value: float | None
    outcome: str
    answer: str | None
    reason: str = ""


_counts: Counter[str] = Counter()
_counting = threading.Lock()


def _begin_in_child() -> None:
    _counts.clear()
    _counting.release()


os.register_at_fork(
    before=_counting.acquire,
    after_in_parent=_counting.release,
    after_in_child=_begin_in_child,
)


def outcome_counts() -> dict[str, int]:
    """Return how many completions this process has scored, by outcome."""
    with _counting:
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
        A result for each, in their order, shape (G,).

    Raises:
        LibraryError: reasoning-gym cannot be used.
        SettingError: A module of a user's own tasks cannot be used.
        TypeError: The completions are no sequence of texts.
    """
    texts = _checked(completions)
    found = extract_answers(texts, [thinking_open] * len(texts))
    pool = shared_pool(item.task_modules)
    return run_blocking(lambda pool: _results(pool, item, found), pool)


async def score_async(
    item: Item, completions: Sequence[str], *, thinking_open: bool = False
) -> list[Result]:
    """The same as `score`, for an event loop, which is never blocked."""
    texts = _checked(completions)
    found = await extract_in_time(texts, [thinking_open] * len(texts))
    return await _results(shared_pool(item.task_modules), item, found)


def _checked(completions: Sequence[str]) -> list[str]:
    texts = [] if isinstance(completions, str) else list(completions)
    if isinstance(completions, str) or not all(isinstance(t, str) for t in texts):
        raise TypeError(f"completions are a list of texts, found {shown(completions)}")
    return texts


async def _results(
    pool: WorkerPool, item: Item, extractions: Sequence[Extraction]
) -> list[Result]:
    if not extractions:
        return []
    try:
        # Without an item there is no score, whatever a completion says.
        entry = await item.made(pool)
    except LostItemError as error:
        said = str(error)
        results = [Result(None, UNMATCHED, e.answer, said) for e in extractions]
    except PoolError as error:
        results = [_no_result(pool, e.answer, error) for e in extractions]
    else:
        answers = [e.answer for e in extractions if e.answer is not None]
        of_answers = iter(await _answer_results(pool, item, entry, answers))
        results = [
            Result(0.0, e.failure, None) if e.failure is not None else next(of_answers)
            for e in extractions
        ]
    _count(results)
    return results


async def _answer_results(
    pool: WorkerPool, item: Item, entry: Mapping[str, Any], answers: Sequence[str]
) -> list[Result]:
    if not answers:
        return []
    found: Sequence[Score | RunError]
    try:
        found = await GroupScorer(pool).score_each(item, entry, answers)
    except PoolError as error:
        found = [error] * len(answers)
    return [
        Result(one.value, one.outcome, answer)
        if isinstance(one, Score)
        else _no_result(pool, answer, one.__cause__ or one)
        for answer, one in zip(answers, found, strict=True)
    ]


def _no_result(pool: WorkerPool, answer: str | None, error: BaseException) -> Result:
    """Return the result of a completion that no worker has scored.

    Raises:
        LibraryError, SettingError: None ever will, before a user repairs something.
    """
    # A process that was killed or is slow may start the next time.
    if isinstance(error, PreloadError) and (error.kind or "status" in error.message):
        raise explained(error, pool) from error
    return Result(None, UNSCORED, answer, str(error))


def _count(results: Sequence[Result]) -> None:
    none = [result for result in results if result.value is None]
    with _counting:
        before = _counts[UNSCORED] + _counts[UNMATCHED]
        _counts.update(result.outcome for result in results)
    count = before + len(none)
    if none and is_worth_a_line(count, len(none)):
        logger.warning(
            "completions without a score: %d (%d so far): %s",
            *(len(none), count, none[0].reason),
        )
