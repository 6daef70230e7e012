"""A sample: one completion of one item with its score, whichever file it comes from.

Samples with the same task and question are of one item. So results of two models, or of
a run of ours and a published one, can be paired without a common numbering.
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
"""The scores that `rescore` gives: the saved one, that of the library's scorer, of the
corrected scorer, and of the corrected scorer with normalization."""

NOT_USED = "not_used"
"""Outcome of an evaluation item that is not used; `reason` says why."""

NO_ANSWER = FORMAT_FAILURES | {"empty_answer"}
"""Outcomes of completions without an answer."""

TRUNCATED = "length"
"""Finish reason of a truncated completion."""


@dataclasses.dataclass(frozen=True)
class Sample:
    """One completion of one item.

    Attributes:
        question: The item's question; equal questions of a task are one item.
        score: In [0, 1]; None if the request failed or the item cannot be scored, which
            does not mean 0.
        outcome: The reason for the score, or for its absence.
        row: All fields in its file.
    """

    task: str
    category: str
    question: str
    score: float | None
    outcome: str
    row: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def item(self) -> tuple[str, str]:
        """The identity of the item."""
        return self.task, self.question

    @property
    def is_truncated(self) -> bool:
        """Whether the completion reached its maximum length."""
        return self.row.get("finish_reason") == TRUNCATED

    @property
    def is_answered(self) -> bool:
        """Whether the completion contains an answer, right or wrong."""
        return self.score is not None and self.outcome not in NO_ANSWER


def grouped(
    values: Iterable[T], key: Callable[[T], Hashable]
) -> dict[Hashable, list[T]]:
    """Return the values by their keys, in order.

    Example:
        >>> grouped(["gcd", "acre", "lcm"], len)
        {3: ['gcd', 'lcm'], 4: ['acre']}
    """
    groups: dict[Hashable, list[T]] = {}
    for value in values:
        groups.setdefault(key(value), []).append(value)
    return groups


def batched(values: Iterator[T], size: int) -> Iterator[list[T]]:
    """Return lists of `size` values; the last one may be shorter."""
    return iter(lambda: list(itertools.islice(values, size)), [])


def pick(row: Row, names: Iterable[str]) -> dict[str, Any]:
    """Return the fields of a row with these names, as far as it has them.

    Example:
        >>> pick({"task": "gcd", "seed": 7}, ["task", "level"])
        {'task': 'gcd'}
    """
    return {name: row[name] for name in names if name in row}


def finite(value: Any) -> float | None:
    """Return a number; None for all else, and for numbers from 1e300 on."""
    is_finite = type(value) in (int, float) and -1e300 < value < 1e300
    return value if is_finite else None


def sample_of(row: Row) -> Sample:
    """Return the sample in a line of samples.jsonl."""
    return Sample(
        task=row["task"],
        category=row.get("category", ""),
        question=row.get("question", ""),
        score=row.get("score"),
        outcome=row["outcome"],
        row=row,
    )
