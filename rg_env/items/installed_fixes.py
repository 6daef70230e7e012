"""Which corrections of the library's scorers hold for the installed library.

A fix holds for the scorer that it was written for, and rests where the installed scorer
has another source. A task whose installed scorer is the library's base scorer has the
fix of that scorer, whichever task it is; every other task has the fix that is written
for it, if there is one.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from rg_env.scoring.score import ScoreFunction, as_unit
from rg_env.task_rules.base_scorer import base_fix
from rg_env.task_rules.rules import ScorerFix
from rg_env.task_rules.table import rules_of
from rg_env.tasks import library


def fix_of(task: str) -> ScorerFix | None:
    """Return the fix of a registered task, whether it holds or not; None without one.

    The mixture has none: its entries are scored by the task that made them.
    """
    rules = rules_of(task)
    return base_fix(rules.has_units) if library.has_base_scorer(task) else rules.fix


@functools.cache
def holds(task: str) -> bool | None:
    """Say whether the fix of a task is for the installed scorer; None without a fix."""
    fix = fix_of(task)
    return None if fix is None else library.scorer_digest(task) == fix.scorer_sha256


def corrected(task: str, library_score: ScoreFunction) -> ScoreFunction:
    """Return the scorer of a task with its fix, if it has one that holds."""
    fix = fix_of(task)
    if fix is None or not holds(task):
        return library_score

    def score(answer: Any, entry: Mapping[str, Any]) -> Any:
        # The library calls its scorers with None where a model gave no answer.
        if not isinstance(answer, str):
            return library_score(answer, entry)
        return fix.score(
            answer, entry, lambda text: as_unit(library_score(text, entry))
        )

    return score
