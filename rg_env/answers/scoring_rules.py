"""The settings of scoring that travel to the worker."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Literal

from rg_env.answers.undressing import undressing

AnswerForms = Literal["exact", "undressed"]

MAX_ANSWER_CHARS = 20_000
"""The longest gold answer of the library has 5,648 characters."""

GOLD_ROOM = 4
"""So many times as long as the gold answer an honest one may be: spaces after commas,
or a line for each number."""


@dataclasses.dataclass(frozen=True)
class ScoringRules:
    """How answers are scored.

    Attributes:
        scorer_fixes: Whether the known faults of the library's scorers are corrected.
        max_answer_chars: Answers longer than this are refused; positive.
        answer_forms: Whether what is only dress around an answer is taken off for a
            second look.
    """

    scorer_fixes: bool = True
    max_answer_chars: int = MAX_ANSWER_CHARS
    answer_forms: AnswerForms = "undressed"

    def longest_answer(self, gold: object) -> int:
        """Return how many characters an answer may have where this one is right."""
        room = GOLD_ROOM * len(gold) if isinstance(gold, str) else 0
        return max(self.max_answer_chars, room)

    def undressing(self, gold: object) -> Callable[[str], str]:
        """Return what takes off the dress of the answers to an item, if any is."""
        if self.answer_forms == "exact":
            return lambda answer: answer
        return undressing(gold if isinstance(gold, str) else None)
