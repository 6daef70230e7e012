"""Fixes of the categories geometry, graphs, induction, logic and probability.

Not corrected, because nothing was found: circuit_logic, family_relationships,
path_star, self_reference, shortest_path and zebra_puzzles.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from rg_env.answers.fixes.fix import LibraryScore, ScorerFix
from rg_env.answers.fixes.propositions import premises_joined, score_conclusion
from rg_env.answers.fixes.substring import (
    LIBRARY_VERSION,
    base_fix,
    junk_behind,
    longer_number,
)
from rg_env.answers.fixes.talk import is_talk, is_talk_beside, score_gold_and_talk

NEAR_MISS: Mapping[str, str] = {
    "advanced_geometry": "0.5 for an incircle radius that is right to two decimals",
    "coin_flip": "as the library to 1 %; beyond, right leading digits, below 0.5",
    "knights_knaves": "2 m / n - 1 for m of n roles right; 0 for a coin's half",
    "quantum_lock": "0.5 for reaching the target in more presses than needed",
    "shortest_path": "0.5 for a path that is longer than the shortest",
}
"""Task to the credit for a wrong answer that the library gives on purpose."""

_NUMBER = r"[+-]?\d+(?:\.\d*)?"
_POINT = re.compile(rf"\(?\s*{_NUMBER}\s*,\s*{_NUMBER}\s*\)?")
_PRESSES = re.compile(r"\b[A-Ca-c]+\b|->|→")
_PROBABILITY = re.compile(
    r"(?:\d{0,9}\.\d{1,40}|\d{1,9}\.?)(?:[eE]-\d{1,2})?|\d{1,12}\s*/\s*\d{1,12}"
)

FILLERS = frozenset({"is", "a", "an", "and"})
"""Words of a claim that are neither a name nor a role."""

COIN = 0.65
"""What the library pays for half of the roles in knights_knaves."""

CLOSE = Fraction(1, 100)
"""How far from the right probability, relative to it, is close to it."""

TOLERANCE = Fraction(1, 10_000)
"""How far from the right probability the library takes a number for right."""

NEARLY_EXACT = Fraction(1, 20)
"""How far that may be, relative to the right probability, so that 0 is not right."""


def _one_value(answer: str, entry: Mapping[str, Any], library: LibraryScore) -> float:
    """Score advanced_geometry: a point is two numbers, an angle has its sign last."""
    kind, text = entry["metadata"]["task_type"], answer.strip()
    if kind == "orthocenter" and not _POINT.fullmatch(text):
        return min(0.01, library(answer))
    if kind == "angle_measure" and "°" in text.rstrip("°"):
        return min(0.01, library(answer))
    return library(answer)


def _value_and_another(entry: Mapping[str, Any]) -> str:
    """Add a third number to a point; put the sign for degrees inside the angle."""
    gold = entry["answer"]
    if entry["metadata"]["task_type"] == "orthocenter":
        return f"{gold}, or 3, 4"
    return f"{gold[:-4]}°{gold[-4:]}"


def _only_presses(
    answer: str, entry: Mapping[str, Any], library: LibraryScore
) -> float:
    """Score quantum_lock: buttons, and nothing but talk beside them."""
    return library(answer) if is_talk_beside(_PRESSES, answer) else 0.0


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


def _one_role_each(
    answer: str, entry: Mapping[str, Any], library: LibraryScore
) -> float:
    """Score knights_knaves: every name once, nothing else, and a coin's half for 0."""
    terms = entry["metadata"]["knight_knave_terms"]
    roles = {str(terms["knight"]).lower(), str(terms["knave"]).lower()}
    names = sorted(str(name).lower() for name in entry["metadata"]["names"])
    words = _words_of(answer)
    rest = " ".join(set(words) - {*FILLERS, *names, *roles})
    if sorted(name for name, _ in _claims(words, roles)) != names or not is_talk(rest):
        return 0.0
    return max(0.0, (library(answer) - COIN) / (1 - COIN))


def _half_of_the_roles_wrong(entry: Mapping[str, Any]) -> str:
    """Give every second person the other role."""
    metadata = entry["metadata"]
    terms = metadata["knight_knave_terms"]
    people = zip(metadata["names"], metadata["solution"], strict=True)
    return ", and ".join(
        f"{name} is {terms['a_knight' if knight == bool(index % 2) else 'a_knave']}"
        for index, (name, knight) in enumerate(people)
    )


def _digits(number: Fraction) -> str:
    """Return the decimals of a number below 1 without the zeros at the end."""
    return f"{float(number):.10f}"[2:].rstrip("0")


def _common_prefix(a: str, b: str) -> int:
    """Return how many characters two texts have in common from their beginning."""
    pairs = zip(a, b, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _probability(answer: str, entry: Mapping[str, Any], library: LibraryScore) -> float:
    """Score coin_flip: close is relative to the right number.

    The library's tolerance makes 0 right for small probabilities, and its credit for
    a common beginning is a share of the shorter number, so that `0` and `0.` are nearly
    always right. Beyond 1 % it is a share of both, which is below a half.
    """
    text = answer.replace(",", "").strip()
    if not _PROBABILITY.fullmatch(text):
        return 0.0
    try:
        found, gold = Fraction(text.replace(" ", "")), Fraction(entry["answer"])
    except (ValueError, ZeroDivisionError):
        return 0.0
    value, distance = library(answer), abs(found - gold)
    if distance <= gold * CLOSE or distance <= min(TOLERANCE, gold * NEARLY_EXACT):
        return value
    if not 0 < found < 1 or not 0 < gold < 1:
        return 0.0
    a, b = _digits(found), _digits(gold)
    return min(value, _common_prefix(a, b) / max(1, len(a) + len(b)))


FIXES: tuple[ScorerFix, ...] = (
    base_fix(
        "acre",
        "Pays for the right word inside another one.",
        lambda entry: f"un{entry['answer']}",
        0.5,
    ),
    ScorerFix(
        task="advanced_geometry",
        library_version=LIBRARY_VERSION,
        scorer_sha256="5745a638170fca3871f07f62b22a5500c7d62366f3ece2bd2fe42dccfc4e2683",
        fault="Reads the first two numbers of a point and passes over what follows.",
        proof=_value_and_another,
        proof_pays=1.0,
        score=_one_value,
    ),
    base_fix(
        "aiw", "Pays for any number that contains the right one.", longer_number, 0.5
    ),
    ScorerFix(
        task="coin_flip",
        library_version=LIBRARY_VERSION,
        scorer_sha256="bcc174b5223bd85396786de368761a056f622f7e349e034f25e9ffed258555f1",
        fault="Divides the common beginning by the shorter number: 0 is mostly right.",
        proof=lambda entry: "0",
        proof_pays=1.0,
        score=_probability,
    ),
    base_fix(
        "course_schedule",
        "Pays for the right answer with the other behind it.",
        junk_behind(" no"),
        0.5,
    ),
    ScorerFix(
        task="knights_knaves",
        library_version=LIBRARY_VERSION,
        scorer_sha256="b4ca86b68dcd0e5f29907c3e2608935c460bfb7a5df68787dac80fa36eac1f27",
        fault="Pays 0.65 for one of two roles, so all knights earn more than half.",
        proof=_half_of_the_roles_wrong,
        proof_pays=0.5,
        score=_one_role_each,
    ),
    base_fix(
        "largest_island",
        "Pays for any number that contains the right one.",
        longer_number,
        0.5,
    ),
    dataclasses.replace(
        base_fix(
            "list_functions",
            "Pays for the right list with another behind it.",
            junk_behind(" [5]"),
            0.4,
        ),
        score=score_gold_and_talk,
    ),
    ScorerFix(
        task="propositional_logic",
        library_version=LIBRARY_VERSION,
        scorer_sha256="5cbc2250d7c9ec68d093bf03acd823b0efef3c99ae4b3bf23390d5b2277418af",
        fault="Pays for the premises themselves and for the weakest that follows.",
        proof=premises_joined,
        proof_pays=1.0,
        score=score_conclusion,
    ),
    ScorerFix(
        task="quantum_lock",
        library_version=LIBRARY_VERSION,
        scorer_sha256="5da1b330c0eaa32eff0332f88c0dce61c51f0e38b1ce908805241649c94e63f2",
        fault="Passes over everything but the letters A to C, also another answer.",
        proof=lambda entry: f"{entry['answer']} or not, 5",
        proof_pays=1.0,
        score=_only_presses,
    ),
    base_fix(
        "simple_geometry",
        "Pays for any number that contains the right one.",
        longer_number,
        0.5,
    ),
    base_fix("syllogism", "Pays for both answers at once.", lambda entry: "YesNo", 0.4),
)
"""One row for each task of these categories whose scorer is corrected."""
