"""knights_knaves: who is said to be what."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rg_env.task_rules.partial_credit import partial_credit
from rg_env.task_rules.reading.filler_words import is_filler
from rg_env.task_rules.rules import (
    Entry,
    LibraryScore,
    ScorerFix,
    TaskRules,
)

_PASSED_OVER = frozenset({"is", "a", "an", "and"})
_MORE_FILLERS = "while but whereas so therefore thus the also hence as too"
_FILLERS = _PASSED_OVER | frozenset(_MORE_FILLERS.split())
"""Words of a claim that are neither a name nor a role, to the scorer and to people."""

_MARK = re.compile(r"^\s*(?:[-*+\u2022\u2013]|\(?\d{1,2}[.):])\s+", re.MULTILINE)
_BETWEEN = re.compile(r"[\s.,;:=()\[\]{}\"'*_|>\u2022\u2013\u2014\u2192&-]+")
_MAX_CHARS = 4_000


def _roles(terms: Mapping[str, object]) -> set[str]:
    return {str(terms["knight"]).lower(), str(terms["knave"]).lower()}


def _as_roles(answer: str, entry: Entry) -> str:
    """Say of each person in turn what he is, in the words that the scorer reads.

    Read is a name and behind it a role, again and again; in any other order, or with
    any other word, the answer is left as it stands.
    """
    metadata = entry.get("metadata", {})
    terms = metadata.get("knight_knave_terms")
    if not terms or len(answer) > _MAX_CHARS or answer == entry.get("answer"):
        return answer
    roles = _roles(terms)
    names = {str(name).lower(): str(name) for name in metadata["names"]}
    words = _BETWEEN.split(_MARK.sub(" ", answer).replace("=>", " ").lower())
    told = [word for word in words if word and word not in _FILLERS]
    pairs = list(zip(told[::2], told[1::2], strict=False))
    is_whole = len(told) == 2 * len(names) and {name for name, _ in pairs} == set(names)
    if not is_whole or any(role not in roles for _, role in pairs):
        return answer
    return ", and ".join(f"{names[name]} is a {role}" for name, role in pairs)


COIN = 0.65
"""What the library gives for half of the roles in knights_knaves."""


def _claims(words: list[str], roles: set[str]) -> set[tuple[str, str]]:
    """Return who is said to be what, as the library reads it."""
    claims: set[tuple[str, str]] = set()
    name = None
    for word in words:
        if word in roles:
            if name is not None:
                claims.add((name, word))
            name = None
        elif word not in _PASSED_OVER:
            name = word
    return claims


def _one_role_each(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score every name once and nothing else; a coin's half is worth 0."""
    roles = _roles(entry["metadata"]["knight_knave_terms"])
    names = sorted(str(name).lower() for name in entry["metadata"]["names"])
    words = re.sub(r"[.,()]", " ", answer.lower()).split()
    rest = " ".join(set(words) - {*_PASSED_OVER, *names, *roles})
    claimed = sorted(name for name, _ in _claims(words, roles))
    if claimed != names or not is_filler(rest):
        return 0.0
    value = library(answer)
    return value if value == 1.0 else partial_credit(value, COIN)


RULES = TaskRules(
    "knights_knaves",
    notation=_as_roles,
    fix=ScorerFix(
        scorer_sha256="b4ca86b68dcd0e5f29907c3e2608935c460bfb7a5df68787dac80fa36eac1f27",
        fault="Gives 0.65 for half of the roles, so all knights score more than half.",
        score=_one_role_each,
    ),
)
