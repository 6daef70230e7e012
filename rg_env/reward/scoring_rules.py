"""The settings of scoring that travel to the worker."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from rg_env.reward.normalization import normalizing
from rg_env.reward.score import Score, ScoreFunction, better_score, score_answer
from rg_env.task_rules.rules import MAX_ANSWER_CHARS
from rg_env.task_rules.table import readings, rejection, rules_of

GOLD_ROOM = 4
"""So many times as long as the gold answer a correct one may be: spaces after commas,
or a line for each number."""


def _gold_of(entry: Mapping[str, Any]) -> str | None:
    gold = entry.get("answer")
    return gold if isinstance(gold, str) else None


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

    def too_long(self, text: str, entry: Mapping[str, Any]) -> str | None:
        """Return why a text is too long for an answer, None where it is not."""
        gold = _gold_of(entry)
        longest = max(self.max_answer_chars, GOLD_ROOM * len(gold or ""))
        if len(text) <= longest:
            return None
        return f"it has {len(text)} characters, and {longest} may be"

    def rejection(
        self, task: str, entry: Mapping[str, Any], text: str, is_guarded: bool = True
    ) -> str | None:
        """Return why a text must not reach the scorer of a task, None where it may.

        The task is the one that made the entry, never a mixture.
        """
        reason = self.too_long(text, entry)
        if reason is None and is_guarded:
            reason = rejection(task, text, _gold_of(entry))
        return reason

    def scoring(
        self,
        task: str,
        entry: Mapping[str, Any],
        scorer: ScoreFunction,
        is_guarded: bool = True,
    ) -> Callable[[str], Score]:
        """Return what scores the answers to an entry; see `better_score`.

        The scorer gets no text that is rejected. Where the question admits several
        readings, the one counts by which the answer scores highest.
        """

        def scoring_of(one: Mapping[str, Any]) -> Callable[[str], Score]:
            def score(form: str) -> Score:
                if self.rejection(task, one, form, is_guarded) is not None:
                    return Score(0.0, "rejected", form)
                return score_answer(form, one, scorer)

            normalized = self.normalizer(task, one)
            return lambda answer: better_score(answer, normalized, score)

        read = readings(task, entry) if self.scorer_fixes else [entry]
        each = [scoring_of(one) for one in read]
        return lambda answer: max((s(answer) for s in each), key=lambda s: s.value)

    def normalizer(self, task: str, entry: Mapping[str, Any]) -> Callable[[str], str]:
        """Return what normalizes the answers to an item of a task, never a mixture.

        An answer stays what it is where it is too long or none is normalized.
        """
        if not self.normalize_answers:
            return lambda answer: answer
        gold = _gold_of(entry)
        rules = rules_of(task)
        unformatted = normalizing(gold, rules.kept_signs, entry.get("question") or "")

        def normalized(answer: str) -> str:
            if answer == gold or self.too_long(answer, entry):
                return answer
            bare = unformatted(answer)
            return bare if rules.notation is None else rules.notation(bare, entry)

        return normalized


DEFAULT_RULES = ScoringRules()
