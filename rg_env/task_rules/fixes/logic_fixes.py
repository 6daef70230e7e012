"""Fixes of the category logic.

Not corrected, because nothing was found: circuit_logic, self_reference and
zebra_puzzles.
"""

from __future__ import annotations

import re

from rg_env.task_rules.logic.propositional_logic import (
    premises_joined,
    score_conclusion,
)
from rg_env.task_rules.reading.talk import is_talk
from rg_env.task_rules.scorer_fix import Entry, LibraryScore, ScorerFix

FILLERS = frozenset({"is", "a", "an", "and"})
"""Words of a claim that are neither a name nor a role."""

COIN = 0.65
"""What the library pays for half of the roles in knights_knaves."""


def _words_of(text: str) -> list[str]:
    """Split a claim about roles into words, as the library does."""
    return re.sub(r"[.,()]", " ", text.lower()).split()


def _claims(words: list[str], roles: set[str]) -> set[tuple[str, str]]:
    """Return who is said to be what, as the library reads it."""
    claims: set[tuple[str, str]] = set()
    name = None
    for word in words:
        if word in roles:
            if name is not None:
                claims.add((name, word))
            name = None
        elif word not in FILLERS:
            name = word
    return claims


def _one_role_each(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score knights_knaves: every name once, nothing else, and a coin's half for 0."""
    terms = entry["metadata"]["knight_knave_terms"]
    roles = {str(terms["knight"]).lower(), str(terms["knave"]).lower()}
    names = sorted(str(name).lower() for name in entry["metadata"]["names"])
    words = _words_of(answer)
    rest = " ".join(set(words) - {*FILLERS, *names, *roles})
    if sorted(name for name, _ in _claims(words, roles)) != names or not is_talk(rest):
        return 0.0
    return max(0.0, (library(answer) - COIN) / (1 - COIN))


def _half_of_the_roles_wrong(entry: Entry) -> str:
    """Give every second person the other role."""
    metadata = entry["metadata"]
    terms = metadata["knight_knave_terms"]
    people = zip(metadata["names"], metadata["solution"], strict=True)
    return ", and ".join(
        f"{name} is {terms['a_knight' if knight == bool(index % 2) else 'a_knave']}"
        for index, (name, knight) in enumerate(people)
    )


FIXES: tuple[ScorerFix, ...] = (
    ScorerFix(
        task="knights_knaves",
        scorer_sha256="b4ca86b68dcd0e5f29907c3e2608935c460bfb7a5df68787dac80fa36eac1f27",
        fault="Pays 0.65 for one of two roles, so all knights earn more than half.",
        proof=_half_of_the_roles_wrong,
        proof_pays=0.5,
        score=_one_role_each,
    ),
    ScorerFix(
        task="propositional_logic",
        scorer_sha256="5cbc2250d7c9ec68d093bf03acd823b0efef3c99ae4b3bf23390d5b2277418af",
        fault="Pays for the premises themselves and for the weakest that follows.",
        proof=premises_joined,
        proof_pays=1.0,
        score=score_conclusion,
    ),
)
