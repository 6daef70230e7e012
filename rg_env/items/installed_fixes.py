"""Which corrections of the library's scorers hold for the installed library.

A fix was written for one scorer. Where the installed scorer has the same source, the
fix holds. Where it differs, the fault is sought again: the fix's own proof is
given to the installed scorer on a few entries, and the fix holds only if it is still
scored too high.

A task whose installed scorer is the library's base scorer has the fix of that scorer,
whichever task it is; every other task has the fix that is written for it, if there is
one.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from typing import Any, Literal

from rg_env.scoring.score import ScoreFunction, as_unit
from rg_env.task_rules.base_scorer import base_fix
from rg_env.task_rules.rules import ScorerFix
from rg_env.task_rules.table import rules_of
from rg_env.tasks import library

PROOF_SEEDS = range(128)
PROOF_ENTRIES = 8
"""So many of the entries of these seeds are checked; not every seed has one that
can be used."""

Standing = Literal["same scorer", "checked again", "not needed any more"]


def fix_of(task: str) -> ScorerFix | None:
    """Return the fix of a registered task, whether it holds or not; None without one.

    The mixture has none: its entries are scored by the task that made them.
    """
    rules = rules_of(task)
    return base_fix(rules.has_units) if library.has_base_scorer(task) else rules.fix


def _is_still_needed(task: str, fix: ScorerFix) -> bool:
    """Say whether the installed scorer still scores the fix's proof."""
    score = library.scoring_dataset(task, {}).score_answer

    def points(entry: dict[str, Any]) -> float:
        try:
            return as_unit(score(fix.proof(entry), entry))
        except Exception:  # noqa: BLE001 - a changed library may raise anything
            return 0.0

    entries = library.usable_entries(task, {}, PROOF_SEEDS)
    checked = itertools.islice(entries, PROOF_ENTRIES)
    return any(points(entry) >= fix.proof_scores for entry in checked)


@functools.cache
def standing(task: str) -> Standing | None:
    """Return whether a task's fix applies to the installed scorer, if it has one."""
    fix = fix_of(task)
    if fix is None:
        return None
    if library.scorer_digest(task) == fix.scorer_sha256:
        return "same scorer"
    return "checked again" if _is_still_needed(task, fix) else "not needed any more"


def corrected(task: str, library_score: ScoreFunction) -> ScoreFunction:
    """Return the scorer of a task with its fix, if it has one that holds."""
    fix = fix_of(task)
    if fix is None or standing(task) == "not needed any more":
        return library_score

    def score(answer: Any, entry: Mapping[str, Any]) -> Any:
        # The library calls its scorers with None where a model gave no answer.
        if not isinstance(answer, str):
            return library_score(answer, entry)
        return fix.score(
            answer, entry, lambda text: as_unit(library_score(text, entry))
        )

    return score
