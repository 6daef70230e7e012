"""Fixes of the category algebra.

The three scorers that parse an expression are given only what an answer by hand can
contain: no unevaluated integral, no function that makes the computer algebra system do
the work, no comment and no second expression behind `or`. That is about what an answer
is worth; keeping text away from the parser is the guard's work, not theirs.
"""

from __future__ import annotations

import re

from rg_env.task_rules.guards import FUNCTIONS
from rg_env.task_rules.reading.antiderivatives import has_wrong_slope
from rg_env.task_rules.reading.talk_around_answers import is_talk
from rg_env.task_rules.scorer_fix import Entry, LibraryScore, ScorerFix

ELEMENTARY = FUNCTIONS | {"C", "E", "pi"}
"""Names an antiderivative may contain, besides its variable."""

CONSTANTS = frozenset({"c", "k", "K", "D"})
"""Other names of the constant of integration, of which an answer has one at most."""

_NO_SOLUTION = (
    "a an are distinct empty emptyset equation exist exists for has in is no none not"
    " number numbers over real reals root roots set solution solutions string the there"
    " value values varnothing"
)
NO_SOLUTION = frozenset(_NO_SOLUTION.split())
"""Words that say that an equation has no solution."""

_DENIALS = frozenset({"no", "none", "not", "empty", "emptyset", "varnothing"})
_EMPTY = frozenset({"", '""', "''", "[]", "{}", "()", r"\{\}", "\u2205"})

_NAME = re.compile(r"[^\W\d]\w*")
_EULER = re.compile(r"\be\b")
_LOG_OF_ABS = re.compile(
    r"\b(?:log|ln)\([Aa]bs\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)\)"
)
_EXPRESSION = re.compile(r"[\w\s+\-*/^().]*")
_PRODUCT_OF_BRACKETS = re.compile(r"\)\(|\)\*(?!\*)|(?<!\*)\*\(")


def _number_in_complex(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score complex_arithmetic: NaN is at no distance from anything."""
    return 0.0 if "nan" in answer.lower().replace(" ", "") else library(answer)


def _antiderivative(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score an integration: elementary functions, or the gold answer as it is.

    Where the library itself found no elementary antiderivative, its gold answer is an
    unevaluated `Integral`, which is right there and nowhere else. The library takes
    `e` for a name, and does not see that `log(abs(u))` has the slope of `log(u)`.
    """
    if "".join(answer.split()) == "".join(entry.get("answer", "").split()):
        return library(answer)
    answer = _LOG_OF_ABS.sub(r"log(\1)", _EULER.sub("E", answer))
    names = set(_NAME.findall(answer)) - {entry["metadata"]["variable"]} - ELEMENTARY
    is_one_constant = len(names) <= 1 and names <= CONSTANTS
    if not _EXPRESSION.fullmatch(answer) or not is_one_constant:
        return 0.0
    metadata = entry["metadata"]
    if has_wrong_slope(answer, metadata["integrand"], metadata["variable"]):
        return 0.0
    return library(answer)


def _unevaluated_integral(entry: Entry) -> str:
    metadata = entry["metadata"]
    return f"Integral({metadata['integrand']}, {metadata['variable']})"


def _is_number(piece: str) -> bool:
    try:
        float(piece)
    except ValueError:
        return False
    return True


def _solutions(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score polynomial_equations: numbers, and nothing but talk beside them.

    Where there is no solution, the answer says so.
    """
    if entry["answer"] == "":
        words = {word.lower() for word in _NAME.findall(answer)}
        words -= {str(entry.get("metadata", {}).get("variable", "")).lower()}
        says_so = words <= NO_SOLUTION and bool(words & _DENIALS)
        is_empty = "".join(answer.split()) in _EMPTY
        has_digit = any(char.isdigit() for char in answer)
        return library(answer) if (says_so or is_empty) and not has_digit else 0.0
    unread = " ".join(piece for piece in answer.split(",") if not _is_number(piece))
    return library(answer) if is_talk(unread) else 0.0


def _more_solutions(entry: Entry) -> str:
    return f"{entry['answer']}, or 4, or 5"


def _expanded_polynomial(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score polynomial_multiplication: a sum, nothing left to multiply."""
    if answer == entry["answer"]:
        return library(answer)
    has_words = any(len(name) > 1 for name in _NAME.findall(answer))
    if has_words or not _EXPRESSION.fullmatch(answer):
        return 0.0
    undone = _PRODUCT_OF_BRACKETS.search("".join(answer.split()))
    return 0.0 if undone else library(answer)


def _gold_or_another(entry: Entry) -> str:
    return f"{entry['answer']} or 0"


FIXES: tuple[ScorerFix, ...] = (
    ScorerFix(
        task="complex_arithmetic",
        scorer_sha256="210549e636793b5129afff648b6839427ba3311b5f521f7522198027dfa1784a",
        fault="`nan` scores 1.0, because min(1.0, NaN) is 1.0.",
        proof=lambda entry: "nan",
        proof_pays=1.0,
        score=_number_in_complex,
    ),
    ScorerFix(
        task="intermediate_integration",
        scorer_sha256="8e765c309e3eb03c5eb9c1bb9cd5146ceb9a2cb13af3df1f2f354cad95b6e2ac",
        fault="`Integral(f, x)` and `integrate(f, x)` score 1.0 for every f.",
        proof=_unevaluated_integral,
        proof_pays=1.0,
        score=_antiderivative,
    ),
    ScorerFix(
        task="polynomial_equations",
        scorer_sha256="e4e1a4946526e4c7cbb24042b0e4c98774c42f0f394936c89963280477d15835",
        fault="Pieces that are no number are ignored: `3.0, or 4.0` scores 1.0, and any"
        " text does where there is no solution.",
        proof=_more_solutions,
        proof_pays=0.9,
        score=_solutions,
    ),
    ScorerFix(
        task="polynomial_multiplication",
        scorer_sha256="5d0893d7e0fabb2e8cf0e6cc82fc3f5bbaaee2d02b73d56e08246d8c395f0752",
        fault="A second expression behind `or`, a comment, `expand(...)` of the"
        " question and products left undone all score 1.0.",
        proof=_gold_or_another,
        proof_pays=1.0,
        score=_expanded_polynomial,
    ),
    ScorerFix(
        task="simple_integration",
        scorer_sha256="25c67a197cbef4e232019e0c3dffb727c1df7d8690550f8147c71954e5f4d2b0",
        fault="`Integral(f, x)` and `integrate(f, x)` score 1.0 for every f.",
        proof=_unevaluated_integral,
        proof_pays=1.0,
        score=_antiderivative,
    ),
)
