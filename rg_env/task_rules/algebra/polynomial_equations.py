"""polynomial_equations: the real solutions of an equation."""

from __future__ import annotations

import re

from rg_env.task_rules.common_answers import seldom
from rg_env.task_rules.reading.numbers import read_number
from rg_env.task_rules.reading.talk import is_talk
from rg_env.task_rules.rules import Entry, LibraryScore, ScorerFix, TaskRules

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
_MAX_CHARS = 2_000
_BETWEEN_SOLUTIONS = re.compile(r"\s*(?:[,;\n]|\bor\b|\band\b)\s*")
_NAMED = re.compile(
    r"(?:[A-Za-z](?:_?\{?\d{1,2}\}?|[\u2080-\u2089])?\s*(?:=|\u2248|\\approx)\s*"
    r"|[A-Za-z]\s*(?:\u2208|\\in)\s*)"
)
_BRACKETS = (("[", "]"), ("(", ")"), ("{", "}"), (r"\{", r"\}"))


def _is_number(piece: str) -> bool:
    try:
        float(piece)
    except ValueError:
        return False
    return True


def _solutions(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score numbers with nothing but talk beside them, or that there is no solution."""
    if entry["answer"] == "":
        words = {word.lower() for word in _NAME.findall(answer)}
        words -= {str(entry.get("metadata", {}).get("variable", "")).lower()}
        says_so = words <= NO_SOLUTION and bool(words & _DENIALS)
        is_empty = "".join(answer.split()) in _EMPTY
        has_digit = any(char.isdigit() for char in answer)
        return library(answer) if (says_so or is_empty) and not has_digit else 0.0
    unread = " ".join(piece for piece in answer.split(",") if not _is_number(piece))
    return library(answer) if is_talk(unread) else 0.0


def _without_brackets(text: str) -> str:
    text = text.strip()
    for opening, closing in _BRACKETS:
        inside = text[len(opening) : -len(closing)]
        if text.startswith(opening) and text.endswith(closing) and len(text) > 1:
            return inside.strip().removesuffix("\\").strip()
    return text


def _joined_by_commas(answer: str, entry: Entry) -> str:
    """Write the solutions of an equation as numbers that are joined by commas."""
    if len(answer) > _MAX_CHARS or not any(map(str.isdigit, answer)):
        return answer
    variable = str(entry.get("metadata", {}).get("variable", ""))
    text = answer.replace("$", "").strip()
    named = _NAMED.match(text)
    if named and not named[0].startswith(variable):
        return answer
    text = _without_brackets(text[named.end() :] if named else text)
    solutions = []
    for piece in _BETWEEN_SOLUTIONS.split(text):
        if not piece:
            continue
        named = _NAMED.match(piece)
        if named and not named[0].startswith(variable):
            return answer
        number = read_number(piece[named.end() :] if named else piece)
        if number is None or number.bottom is not None:
            return answer
        solutions.append(number.text)
    return ", ".join(solutions)


RULES = TaskRules(
    "polynomial_equations",
    notation=_joined_by_commas,
    fix=ScorerFix(
        scorer_sha256="e4e1a4946526e4c7cbb24042b0e4c98774c42f0f394936c89963280477d15835",
        fault="Ignores pieces that are no number: `3.0, or 4.0` scores 1.0,"
        " and any text where there is no solution.",
        proof=lambda entry: f"{entry['answer']}, or 4, or 5",
        proof_scores=0.9,
        score=_solutions,
    ),
    item_checks=(
        seldom(
            "equation has the root 0",
            lambda entry: 0.0 in entry["metadata"]["real_solutions"],
            one_in=8,  # `0` scored 0.30 to 0.69
        ),
    ),
)
