"""A sample: one completion of one item with its score, whichever file it comes from.

Samples of one question of one task are samples of one item: that pairs the results of
two models, or of a run of ours and a published one, without a common numbering.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from rg_env.reward.extraction import FORMAT_FAILURES

Row = Mapping[str, Any]
T = TypeVar("T")

SCORES = ("saved", "library", "fixes", "ours")
"""The scores that `rescore` gives, each with one step more than the one before."""

NOT_USED = "not_used"
"""Outcome of an item that is not sampled: its reference answer is not right."""

UNANSWERED = FORMAT_FAILURES | {"empty_answer"}
"""Outcomes of completions that hold no answer."""

TRUNCATED = "length"
"""Finish reason of a completion that was cut off."""


@dataclasses.dataclass(frozen=True)
class Sample:
    """One completion of one item.

    Attributes:
        question: The item's question; equal questions of a task are one item.
        score: In [0, 1]; None where there is none: the request failed, or the item
            cannot be scored. That is no wrong answer.
        outcome: Why the score is what it is.
        row: All that its file says of it.
    """

    task: str
    category: str
    question: str
    score: float | None
    outcome: str
    row: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def item(self) -> tuple[str, str]:
        """What is the same for all completions of one item."""
        return self.task, self.question

    @property
    def is_truncated(self) -> bool:
        """Whether the server cut the completion off."""
        return self.row.get("finish_reason") == TRUNCATED

    @property
    def is_answered(self) -> bool:
        """Whether the completion holds an answer, right or wrong."""
        return self.score is not None and self.outcome not in UNANSWERED


def grouped(
    things: Iterable[T], key: Callable[[T], Hashable]
) -> dict[Hashable, list[T]]:
    """Return things by what they share, in the order in which they come."""
    by_item: dict[Hashable, list[T]] = {}
    for thing in things:
        by_item.setdefault(key(thing), []).append(thing)
    return by_item


def batched(things: Iterator[T], size: int) -> Iterator[list[T]]:
    """Return lists of as many things, the last one perhaps shorter."""
    return iter(lambda: list(itertools.islice(things, size)), [])


def finite(value: Any) -> float | None:
    """Return a number; None for all else, and for what is too large for a float."""
    is_finite = type(value) in (int, float) and -1e300 < value < 1e300
    return value if is_finite else None


def sample_of(row: Row) -> Sample:
    """Return the sample that a line of samples.jsonl is of."""
    return Sample(
        task=row["task"],
        category=row.get("category", ""),
        question=row.get("question", ""),
        score=row.get("score"),
        outcome=row["outcome"],
        row=row,
    )
