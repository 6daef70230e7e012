"""The settings of scoring that travel to the worker."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Literal

from rg_env.scoring.normalization import undressing
from rg_env.task_rules.table import rules_of

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
        answer_forms: Whether an answer that is not right as it stands is looked at
            once more, without its dress and in the task's own spelling.
    """

    scorer_fixes: bool = True
    max_answer_chars: int = MAX_ANSWER_CHARS
    answer_forms: AnswerForms = "undressed"

    def longest_answer(self, gold: object) -> int:
        """Return how many characters an answer may have where this one is right."""
        room = GOLD_ROOM * len(gold) if isinstance(gold, str) else 0
        return max(self.max_answer_chars, room)

    def plain_form(self, task: str, entry: Mapping[str, Any]) -> Callable[[str], str]:
        """Return what gives the answers to an item their second form.

        Args:
            task: The task that made the entry, also where a mixture holds it.
            entry: The library's entry.

        Returns:
            From an answer to the same without its dress, spelled as the scorer of the
            task reads it; to the answer itself where only exact answers count.
        """
        if self.answer_forms == "exact":
            return lambda answer: answer
        gold = entry.get("answer")
        rules = rules_of(task)
        undress = undressing(gold if isinstance(gold, str) else None, rules.kept_signs)
        spell = rules.notation
        longest = self.longest_answer(gold)

        def plain(answer: str) -> str:
            if answer == gold:
                return answer
            bare = undress(answer)
            if spell is None or len(bare) > longest:
                return bare
            return spell(bare, entry)

        return plain
