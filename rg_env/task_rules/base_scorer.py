"""The fix of every task whose scorer is the base scorer of the library.

The base scorer gives `len(gold) / len(answer)` wherever the gold answer occurs in the
answer as text: 0.5 for `-5` or `50` where 5 is right, 0.5 for `Yes No`, 0.98 for a long
grid with a wrong cell behind it.

Here the credit stays what the library gives, also where that is small, but only for a
wrapper: see rg_env.task_rules.reading.filler_words. Everything else scores 0.

No task needs a fix in its row for this: whoever knows the installed library asks for
the fix of each task that inherits the scorer, so that a new task has it as well.
"""

from __future__ import annotations

from rg_env.task_rules.reading.filler_words import is_wrapper
from rg_env.task_rules.rules import Entry, FixedScore, LibraryScore, ScorerFix

BASE_SCORER_SHA256 = "d4c377f0ac8e002f2cc7809fd18f6359465da4faae08a43824c050926a1d83f4"
"""Digest of the source of `ProceduralDataset.score_answer`."""


def _wrapper_score(has_units: bool) -> FixedScore:
    """Return the score of the gold answer and of wrappers."""

    def score(answer: str, entry: Entry, library: LibraryScore) -> float:
        gold = entry["answer"]
        if not isinstance(gold, str) or answer == gold:
            return library(answer)
        question = entry.get("question", "") if has_units else ""
        return library(answer) if is_wrapper(answer, gold, question) else 0.0

    return score


def base_fix(has_units: bool = True) -> ScorerFix:
    """Return the fix of a task that inherits the library's base scorer."""
    return ScorerFix(
        scorer_sha256=BASE_SCORER_SHA256,
        fault="Scores any text that contains the right answer, by its length.",
        score=_wrapper_score(has_units),
    )
