"""A sample: one completion of one item with its score, whichever file it comes from.

Samples of one question of one task are samples of one item: that pairs the results of
two models, or of a run of ours and a published one, without a common numbering.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from rg_env.scoring.extraction import FormatFailure

UNANSWERED = frozenset({*get_args(FormatFailure), "empty_answer"})
"""Outcomes of completions that hold no answer."""

TRUNCATED = frozenset({"length"})
"""Words of servers for a completion that was cut off."""


@dataclasses.dataclass(frozen=True)
class Sample:
    """One completion of one item.

    Attributes:
        task: The registered task that made the item.
        category: The library's category of the task.
        question: The item's question; equal questions of a task are one item.
        score: In [0, 1]; None where there is none: the request failed, or the item
            cannot be scored. That is no wrong answer.
        outcome: Why the score is what it is.
        is_truncated: Whether the server cut the completion off.
        row: All that its file says of it.
    """

    task: str
    category: str
    question: str
    score: float | None
    outcome: str
    is_truncated: bool = False
    row: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def item(self) -> tuple[str, str]:
        """What is the same for all completions of one item."""
        return self.task, self.question

    @property
    def is_answered(self) -> bool:
        """Whether the completion holds an answer, right or wrong."""
        return self.score is not None and self.outcome not in UNANSWERED


def scored(samples: Iterable[Sample]) -> list[Sample]:
    """Return the samples that have a score."""
    return [sample for sample in samples if sample.score is not None]
