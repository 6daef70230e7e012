r"""Roles of people and formulas of propositional logic, written in other signs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rg_env.task_rules.rules import Notation as Spelling

MAX_CHARS = 4_000

# -- roles -----------------------------------------------------------------------------

_FILLERS = "is a an and while but whereas so therefore thus the also hence as too"
FILLERS = frozenset(_FILLERS.split())
"""Words of a claim that are neither a name nor a role."""

_MARK = re.compile(r"^\s*(?:[-*+\u2022\u2013]|\(?\d{1,2}[.):])\s+", re.MULTILINE)
_BETWEEN = re.compile(r"[\s.,;:=()\[\]{}\"'*_|>\u2022\u2013\u2014\u2192&-]+")


def as_roles(answer: str, entry: Mapping[str, Any]) -> str:
    """Say of each person in turn what he is, in the words that the scorer reads.

    Read is a name and behind it a role, again and again; in any other order, or with
    any other word, the answer is left as it stands.
    """
    metadata = entry.get("metadata", {})
    terms = metadata.get("knight_knave_terms")
    if not terms or len(answer) > MAX_CHARS or answer == entry.get("answer"):
        return answer
    roles = {str(terms["knight"]).lower(), str(terms["knave"]).lower()}
    names = {str(name).lower(): str(name) for name in metadata["names"]}
    words = _BETWEEN.split(_MARK.sub(" ", answer).replace("=>", " ").lower())
    told = [word for word in words if word and word not in FILLERS]
    pairs = list(zip(told[::2], told[1::2], strict=False))
    is_whole = len(told) == 2 * len(names) and {name for name, _ in pairs} == set(names)
    if not is_whole or any(role not in roles for _, role in pairs):
        return answer
    return ", and ".join(f"{names[name]} is a {role}" for name, role in pairs)


# -- formulas --------------------------------------------------------------------------

_NO_LETTER_BEHIND = r"(?![A-Za-z])"
_CONNECTIVES = (
    (
        r"<-+>|<=+>|\\(?:leftrightarrow|Leftrightarrow|iff)"
        + _NO_LETTER_BEHIND
        + r"|[\u21d4\u27f7\u27fa\u2261]|\b(?:iff|IFF)\b|\b(?:if and only if)\b",
        "\u2194",
    ),
    (
        r"-+>|=+>|\\(?:rightarrow|Rightarrow|to|implies|supset)"
        + _NO_LETTER_BEHIND
        + r"|[\u21d2\u27f6\u27f9\u2283]|\b(?:implies|IMPLIES)\b",
        "\u2192",
    ),
    (
        r"&&?|/\\|\\(?:land|wedge|cdot)" + _NO_LETTER_BEHIND + r"|\b(?:and|AND)\b",
        "\u2227",
    ),
    (
        r"\|\|?|\\/|\\(?:lor|vee)"
        + _NO_LETTER_BEHIND
        + r"|\b(?:or|OR)\b"
        + r"|(?<=[A-Z)\s])v(?=[A-Z(\s\u00ac~!])",
        "\u2228",
    ),
    (
        r"[~!\uff5e\u223c]|\\(?:neg|lnot|sim)"
        + _NO_LETTER_BEHIND
        + r"|\b(?:not|NOT)\b",
        "\u00ac",
    ),
)
_SIGNS = tuple((re.compile(signs), written) for signs, written in _CONNECTIVES)
_BRACKETS = str.maketrans("[]", "()")
_FIRST = re.compile(
    r"^(?:\u2234|\\therefore\b|\u22a2|\u22a8|\\vdash\b|(?:therefore|thus|hence)\b)\s*",
    re.I,
)


def as_formula(answer: str, entry: Mapping[str, Any]) -> str:
    """Write a formula with the connectives that its question names."""
    if len(answer) > MAX_CHARS:
        return answer
    text = _FIRST.sub("", answer.strip())
    for sign, written in _SIGNS:
        text = sign.sub(written, text)
    return text.translate(_BRACKETS)


SPELLINGS: Mapping[str, Spelling] = {
    "knights_knaves": as_roles,
    "propositional_logic": as_formula,
}
"""Task to its spelling."""
