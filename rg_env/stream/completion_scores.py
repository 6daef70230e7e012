"""Results of whole completions: their answers are extracted and scored by workers.

A completion without an answer scores 0 with the reason as its outcome. A completion
has no value at all if its item cannot be made or no worker gives a score.
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

# Completions below both limits are searched in place, in half a millisecond.
FEW_CHARS = 2**18
FEW_SIGNS = 2**9

UNMATCHED = "unmatched"
"""Outcome without a value, as `UNSCORED`: the item is not made, or is another."""


@dataclasses.dataclass(frozen=True)
class Result:
    """The result for one completion.

    Attributes:
        value: Score in [0, 1]; None if there is no score, which does not mean 0.
        outcome: One word: `right`, `partial`, `wrong`, ...; without a value `unscored`
            or `unmatched`.
        answer: The extracted answer, None where there was none.
        reason: Why there is no value, "" where there is one.
        parts: `format` (1.0 with an answer), `correct` (1.0 with a full score) and
            `partial` (the score with partial credit), else 0.0; {} without a value.
    """

    value: float | None
    outcome: str
    answer: str | None
    reason: str = ""
    parts: Mapping[str, float] = dataclasses.field(default_factory=dict, compare=False)


# -- answers ---------------------------------------------------------------------------


def _extracted(
    texts: Sequence[str], opened: Sequence[bool], answer_format: AnswerFormat
) -> list[Extraction]:
    return [
        extract_answer(text, thinking_open=is_open, answer_format=answer_format)
        for text, is_open in zip(texts, opened, strict=True)
    ]


async def extract_answers(
    texts: Sequence[str],
    thinking_open: Sequence[bool],
    answer_format: AnswerFormat = "tags",
) -> list[Extraction]:
    """Return the answers of completions, or why there is none, both of shape (G,).

    The event loop is not blocked, whatever the texts are.
    """
    is_short = sum(map(len, texts)) <= FEW_CHARS
    signs = "<" if answer_format == "tags" else "<\\{}"
    if is_short and sum(t.count(sign) for t in texts for sign in signs) <= FEW_SIGNS:
        return _extracted(texts, thinking_open, answer_format)
    return await in_thread(_extracted, texts, thinking_open, answer_format)


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
        TypeError: The completions are no sequence of texts.

    Example:
        >>> item = Item("gcd", seed=7)
        >>> score(item, ["I do not know.", f"<answer>{item.gold}</answer>"])[1].value
        1.0
    """
    texts = _texts(item, completions)
    opened = [thinking_open] * len(texts)
    extractions = _extracted(texts, opened, item.answer_format)
    results = functools.partial(_results, item=item, extractions=extractions)
    return run_blocking(results, shared_pool(item.task_modules))


async def score_async(
    item: Item, completions: Sequence[str], *, thinking_open: bool = False
) -> list[Result]:
    """Do the same as `score` in an event loop, which is never blocked."""
    texts = _texts(item, completions)
    opened = [thinking_open] * len(texts)
    extractions = await extract_answers(texts, opened, item.answer_format)
    return await _results(shared_pool(item.task_modules), item, extractions)


def _texts(item: Item, completions: Sequence[str]) -> list[str]:
    if not isinstance(item, Item):
        raise TypeError(f"item: {unexpected(item, 'an Item')}")
    texts = list(completions)
    if isinstance(completions, str) or not all(isinstance(t, str) for t in texts):
        raise TypeError(f"completions are a list of texts, found {shown(completions)}")
    return texts


async def _results(
    pool: WorkerPool, item: Item, extractions: Sequence[Extraction]
) -> list[Result]:
    answers = [e.answer for e in extractions if e.answer is not None]
    scores: list[Score | RunError]
    try:
        # Without an item there is no score, whatever a completion says.
        entry = await item.get_entry(pool) if extractions else {}
        scorer = GroupScorer(pool, item.deadline_s, item.rules)
        each = iter(await scorer.score_each(item, entry, answers))
        scores = [
            next(each) if e.failure is None else Score(0.0, e.failure, None)
            for e in extractions
        ]
    except (LostItemError, PoolError) as error:
        scores = [error] * len(extractions)
    results = list(map(_result, extractions, scores))
    _counts.update([result.outcome for result in results])  # at once, for threads
    reasons = [result.reason for result in results if result.value is None]
    count = _counts[UNSCORED] + _counts[UNMATCHED]
    if reasons and should_log(count, len(reasons)):
        logger.warning("%d completions without a score so far: %s", count, reasons[0])
    return results


def _result(extraction: Extraction, score: Score | RunError) -> Result:
    if isinstance(score, Score):
        parts = {
            "format": float(score.answer is not None),
            "correct": float(score.partial == 1.0),
            "partial": score.partial,
        }
        return Result(score.value, score.outcome, score.answer, parts=parts)
    if isinstance(score, LostItemError):
        return Result(None, UNMATCHED, extraction.answer, str(score))
    # A process that was killed or is slow may start the next time; else none ever will.
    if isinstance(score, PreloadError) and (
        score.class_name or "status" in score.message
    ):
        raise startup_error(score) from score
    return Result(None, UNSCORED, extraction.answer, str(score))
