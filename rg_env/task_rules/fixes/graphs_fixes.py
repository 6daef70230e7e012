"""Fixes of the category graphs.

Not corrected, because nothing was found: family_relationships, path_star and
shortest_path.
"""

from __future__ import annotations

import re

from rg_env.task_rules.reading.talk import is_talk_beside
from rg_env.task_rules.scorer_fix import Entry, LibraryScore, ScorerFix

_PRESSES = re.compile(r"\b[A-Ca-c]+\b|->|→")
_BUTTONS = re.compile(r"\b[A-Ca-c]+\b")


def _only_presses(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score quantum_lock: buttons, and nothing but talk beside them.

    The library also reads the letters of the talk, the B of `boxed` for one.
    """
    if not is_talk_beside(_PRESSES, answer):
        return 0.0
    return library(" ".join(_BUTTONS.findall(answer)))


FIXES: tuple[ScorerFix, ...] = (
    ScorerFix(
        task="quantum_lock",
        scorer_sha256="5da1b330c0eaa32eff0332f88c0dce61c51f0e38b1ce908805241649c94e63f2",
        fault="Passes over everything but the letters A to C, also another answer.",
        proof=lambda entry: f"{entry['answer']} or not, 5",
        proof_pays=1.0,
        score=_only_presses,
    ),
)
