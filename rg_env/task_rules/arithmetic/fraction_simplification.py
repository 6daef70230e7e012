"""fraction_simplification: a fraction in lowest terms."""

from __future__ import annotations

import re

from rg_env.task_rules.reading.numbers import as_fraction
from rg_env.task_rules.rules import Entry, LibraryScore, ScorerFix, TaskRules

_LATEX_FRACTION = re.compile(r"\\d?frac\{\d+\}\{\d+\}", re.IGNORECASE)


def _fraction(answer: str, entry: Entry, library: LibraryScore) -> float:
    if "frac" in answer.lower():
        bare = "".join(answer.split()).strip("$.")
        return library(answer) if _LATEX_FRACTION.fullmatch(bare) else 0.0
    return library(answer)


RULES = TaskRules(
    "fraction_simplification",
    notation=as_fraction,
    fix=ScorerFix(
        scorer_sha256="aa013e4952b0d79b9b896b0d46db0ab3ee6888e85c8df21a283d4efb0a3f823f",
        fault="Ignores what follows a LaTeX fraction, even a second one.",
        score=_fraction,
    ),
)
