"""The settings of scoring that travel to the worker."""

from __future__ import annotations

import dataclasses

MAX_ANSWER_CHARS = 20_000
"""The longest gold answer of the library has 5,648 characters."""


@dataclasses.dataclass(frozen=True)
class ScoringRules:
    """How answers are scored.

    Attributes:
        scorer_fixes: Whether the known faults of the library's scorers are corrected.
        max_answer_chars: Answers longer than this are refused; positive.
    """

    scorer_fixes: bool = True
    max_answer_chars: int = MAX_ANSWER_CHARS
