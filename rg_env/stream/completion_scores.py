"""Results of whole completions, whose answers are extracted here and scored by workers.

A completion without an answer scores 0, and its outcome says why. A completion has no
value at all if its item cannot be made or no worker gives a score.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
import os
from collections import Counter
from collections.abc import Mapping, Sequence

from rg_env.errors import RunError, shown, unexpected
from rg_env.executor import in_thread
from rg_env.library.installed_library import shared_pool, startup_error
from rg_env.logs import should_log
from rg_env.reward.extraction import AnswerFormat, Extraction, extract_answer
from rg_env.reward.score import UNSCORED, Score
from rg_env.stream.group_scorer import GroupScorer
from rg_env.stream.item import Item, LostItemError
from rg_env.workers.call import PoolError, PreloadError
from rg_env.workers.worker_pool import WorkerPool, run_blocking

logger = logging.getLogger(__name__)

# Completions up to both limits are searched on the event loop, in half a millisecond.
MAX_CHARS_ON_LOOP = 2**18
MAX_SIGNS_ON_LOOP = 2**9

UNMATCHED = "unmatched"
"""Outcome without a value: the installed library makes no item, or a different one."""


@dataclasses.dataclass(frozen=True)
class Result:
    """The result for one completion.

    Attributes:
        value: Score in [0, 1]; None if there is no score, which does not mean 0.
        outcome: One word: `right`, `partial`, `wrong`, ...; without a value `unscored`
            or `unmatched`.
        answer: The extracted answer, None if there was none.
        reason: Why there is no value, "" if there is one.
        parts: `format` (1.0 with an answer), `correct` (1.0 with a full score) and
            `partial` (the score with partial credit), else 0.0; {} without a value.
    """

    value: float | None
    outcome: str
    answer: str | None
    reason: str = ""
    parts: Mapping[str, float] = dataclasses.field(default_factory=dict, compare=False)


# -- answers ---------------------------------------------------------------------------


def _extract_all(
    texts: Sequence[str], thinking_open: Sequence[bool], answer_format: AnswerFormat
) -> list[Extraction]:
    return [
        extract_answer(text, thinking_open=is_open, answer_format=answer_format)
        for text, is_open in zip(texts, thinking_open, strict=True)
    ]


async def extract_answers(
    texts: Sequence[str],
    thinking_open: Sequence[bool],
    answer_format: AnswerFormat = "tags",
) -> list[Extraction]:
    """Return the answer of each completion, or why there is none, shape (G,).

    Args:
        texts: The completions, shape (G,).
        thinking_open: Whether the prompt ended inside of the thinking, shape (G,).
        answer_format: How a completion marks its answer.
    """
    is_short = sum(map(len, texts)) <= MAX_CHARS_ON_LOOP
    signs = "<" if answer_format == "tags" else "<\\{}"
    num_signs = sum(text.count(sign) for text in texts for sign in signs)
    if is_short and num_signs <= MAX_SIGNS_ON_LOOP:
        return _extract_all(texts, thinking_open, answer_format)
    return await in_thread(_extract_all, texts, thinking_open, answer_format)


# -- results ---------------------------------------------------------------------------

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
        completions: The texts of a model, of any length and content, shape (G,).
        thinking_open: Whether the prompt itself ended with `<think>`, as some chat
            templates have it.

    Returns:
        The results in the same order, shape (G,).

    Raises:
        LibraryError: reasoning-gym cannot be used.
        SettingError: A module of a user's own tasks cannot be used.
        TypeError: The completions are not a sequence of texts.

    Example:
        >>> item = Item("gcd", seed=7)
        >>> score(item, ["I do not know.", f"<answer>{item.gold}</answer>"])[1].value
        1.0
    """
    texts = _check_texts(item, completions)
    extractions = _extract_all(texts, [thinking_open] * len(texts), item.answer_format)
    score_in = functools.partial(_score_in, item=item, extractions=extractions)
    return run_blocking(score_in, shared_pool(item.task_modules))


async def score_async(
    item: Item, completions: Sequence[str], *, thinking_open: bool = False
) -> list[Result]:
    """Do the same as `score` without blocking the event loop."""
    texts = _check_texts(item, completions)
    extractions = await extract_answers(
        texts, [thinking_open] * len(texts), item.answer_format
    )
    return await _score_in(shared_pool(item.task_modules), item, extractions)


def _check_texts(item: Item, completions: Sequence[str]) -> list[str]:
    if not isinstance(item, Item):
        raise TypeError(f"item: {unexpected(item, 'an Item')}")
    texts = list(completions)
    if isinstance(completions, str) or not all(isinstance(t, str) for t in texts):
        raise TypeError(f"completions are a list of texts, found {shown(completions)}")
    return texts


async def _score_in(
    pool: WorkerPool, item: Item, extractions: Sequence[Extraction]
) -> list[Result]:
    answers = [e.answer for e in extractions if e.answer is not None]
    scores: list[Score | RunError]
    try:
        # Also if there are no answers: without an entry, no completion has a score.
        entry = await item.get_entry(pool) if extractions else {}
        scorer = GroupScorer(pool, item.deadline_s, item.rules)
        answer_scores = iter(await scorer.score_each(item, entry, answers))
        scores = [
            next(answer_scores) if e.failure is None else Score(0.0, e.failure, None)
            for e in extractions
        ]
    except (LostItemError, PoolError) as error:
        scores = [error] * len(extractions)
    results = list(map(_build_result, extractions, scores))
    # One call, which no other thread can interrupt.
    _counts.update([result.outcome for result in results])
    reasons = [result.reason for result in results if result.value is None]
    count = _counts[UNSCORED] + _counts[UNMATCHED]
    if reasons and should_log(count, len(reasons)):
        logger.warning("%d completions without a score so far: %s", count, reasons[0])
    return results


def _build_result(extraction: Extraction, score: Score | RunError) -> Result:
    if isinstance(score, Score):
        parts = {
            "format": float(score.answer is not None),
            "correct": float(score.partial == 1.0),
            "partial": score.partial,
        }
        return Result(score.value, score.outcome, score.answer, parts=parts)
    if isinstance(score, LostItemError):
        return Result(None, UNMATCHED, extraction.answer, str(score))
    # A process that was killed or is slow may start the next time. Otherwise none will.
    if isinstance(score, PreloadError) and (
        score.class_name or "status" in score.message
    ):
        raise startup_error(score) from score
    return Result(None, UNSCORED, extraction.answer, str(score))
