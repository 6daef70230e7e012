"""The settings of scoring that travel to the worker."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from rg_env.scoring.normalization import normalizing
from rg_env.task_rules.table import rules_of

MAX_ANSWER_CHARS = 20_000
"""The longest gold answer of the library has 5,648 characters."""

GOLD_ROOM = 4
"""So many times as long as the gold answer a correct one may be: spaces after commas,
or a line for each number."""


@dataclasses.dataclass(frozen=True)
class ScoringRules:
    """How answers are scored.

    Attributes:
        scorer_fixes: Whether the known faults of the library's scorers are corrected.
        max_answer_chars: Answers longer than this are rejected; positive.
        normalize_answers: Whether answers are also scored without their formatting and
            in the task's notation.
    """

    scorer_fixes: bool = True
    max_answer_chars: int = MAX_ANSWER_CHARS
    normalize_answers: bool = True

    def longest_answer(self, gold: object) -> int:
        """Return how many characters an answer may have where this one is right."""
        room = GOLD_ROOM * len(gold) if isinstance(gold, str) else 0
        return max(self.max_answer_chars, room)

    def normalizer(self, task: str, entry: Mapping[str, Any]) -> Callable[[str], str]:
        """Return what normalizes the answers to an item of a task, never a mixture.

        Returns:
            From an answer to the same without formatting, in the notation that the
            scorer of the task reads; to the answer itself where none is normalized.
        """
        if not self.normalize_answers:
            return lambda answer: answer
        gold = entry.get("answer")
        rules = rules_of(task)
        unformatted = normalizing(
            gold if isinstance(gold, str) else None, rules.kept_signs
        )
        longest = self.longest_answer(gold)

        def normalized(answer: str) -> str:
            if answer == gold:
                return answer
            bare = unformatted(answer)
            if rules.notation is None or len(bare) > longest:
                return bare
            return rules.notation(bare, entry)

        return normalized
