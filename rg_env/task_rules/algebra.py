"""Rules of the algebra tasks."""

from __future__ import annotations

import contextlib
import re
import string
from fractions import Fraction

from rg_env.task_rules.answer_matching import one_answer
from rg_env.task_rules.reading.expressions import ExpressionBounds, expression_guard
from rg_env.task_rules.reading.numbers import as_number
from rg_env.task_rules.rules import (
    Entry,
    LibraryScore,
    ScorerFix,
    TaskRules,
    downsample,
)

# -- complex_arithmetic ----------------------------------------------------------------

_TERM = re.compile(r"[+-]?[^+-]+|[+-]")


def _read_complex(text: str) -> complex:
    plain = "".join(text.split()).strip("()").replace("i", "j")
    return sum(map(complex, _TERM.findall(plain)), 0j)


def _as_complex(answer: str, entry: Entry) -> str:
    """Write the right number in the form of the reference, `0.0 + 13.0i`."""
    number = as_number(answer, entry)
    gold = entry.get("answer") or ""
    with contextlib.suppress(ValueError):
        return gold if _read_complex(number) == _read_complex(gold) else number
    return number


COMPLEX_ARITHMETIC = TaskRules(
    "complex_arithmetic",
    notation=_as_complex,
    fix=one_answer(),
)


# -- polynomial_equations --------------------------------------------------------------

_NO_SOLUTION = (
    "a an are distinct empty emptyset equation exist exists for has in is no none not"
    " number numbers over real reals root roots set solution solutions string the there"
    " value values varnothing"
)
NO_SOLUTION = frozenset(_NO_SOLUTION.split())
"""Words of a sentence that says that there is no solution."""

_DENIALS = frozenset({"no", "none", "not", "empty", "emptyset", "varnothing"})
_EMPTY = frozenset({"", '""', "''", "[]", "{}", "()", r"\{\}", "\u2205"})
_NAME = re.compile(r"[^\W\d]\w*")

_EQUATION_TERM = re.compile(r"([+-]?)(\d*)\*?(?:([a-z])(?:\*\*(\d+))?)?")
_ROOT = re.compile(r"\s*[+-]?(?:\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})\s*")
_UNIT = Fraction(1, 10_000)
"""One unit of the last decimal place that the question asks for."""


def _value_at(polynomial: str, x: Fraction) -> Fraction:
    """Return the value of `7*l**4 - 27`, exactly."""
    total = Fraction(0)
    terms = _EQUATION_TERM.findall("".join(polynomial.split()))
    for sign, digits, variable, exponent in terms:
        if digits or variable:
            power = int(exponent or 1) if variable else 0
            total += int(f"{sign}{digits or 1}") * x**power
    return total


def _is_root(root: Fraction, gold: Fraction, polynomial: str) -> bool:
    """Return whether a number is a root to four places, rounded or cut off.

    The question rounds a 5 down, and the library rounds to the nearest number. If a
    root is cut off, the exact one lies between the two numbers.
    """
    if root == gold:
        return True
    if abs(gold) - abs(root) != _UNIT or root * gold < 0:
        return False
    return _value_at(polynomial, root) * _value_at(polynomial, gold) < 0


def _lists_the_roots(answer: str, entry: Entry) -> bool:
    """Return whether an answer lists exactly the roots."""
    pieces = answer.split(",")
    metadata = entry.get("metadata", {})
    golds = sorted(Fraction(str(root)) for root in metadata.get("real_solutions", ()))
    if len(pieces) != len(golds):
        return False
    pairs = zip(sorted(map(Fraction, pieces)), golds, strict=True)
    return all(
        _is_root(root, gold, metadata["polynomial_expr"]) for root, gold in pairs
    )


def _says_no_solution(answer: str, variable: str) -> bool:
    """Return whether an answer is empty, or a sentence that denies a solution."""
    if "".join(answer.split()) in _EMPTY:
        return True
    words = {word.lower() for word in _NAME.findall(answer)} - {variable.lower()}
    is_denial = words <= NO_SOLUTION and not words.isdisjoint(_DENIALS)
    return is_denial and not any(map(str.isdigit, answer))


def _score_roots(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score a list of numbers, or the statement that there is no solution.

    Numbers that are not the roots score by their distance from them.
    """
    if entry["answer"] == "":
        variable = str(entry.get("metadata", {}).get("variable", ""))
        return library(answer) if _says_no_solution(answer, variable) else 0.0
    if not all(map(_ROOT.fullmatch, answer.split(","))):
        return 0.0
    value = library(answer)
    if value == 1.0 or _lists_the_roots(answer, entry):
        return 1.0
    return value / 2


POLYNOMIAL_EQUATIONS = TaskRules(
    "polynomial_equations",
    fix=ScorerFix(
        fault="Ignores parts that are not numbers: `3.0, or 4.0` scores 1.0, and so"
        " does any text if there is no solution; gives 0.9 to a root that is off by"
        " 0.01, and to one that is rounded down as the question asks.",
        score=_score_roots,
    ),
    item_checks=(
        downsample(
            "equation has the root 0",
            lambda entry: 0.0 in entry["metadata"]["real_solutions"],
            one_in=8,  # `0` scored 0.30 to 0.69
        ),
    ),
)


# -- polynomial_multiplication ---------------------------------------------------------

# The guard protects the parser; the fix rejects products that only the parser expands.

_EXPRESSION = re.compile(r"[\w\s+\-*/^().]*")
_PRODUCT_OF_BRACKETS = re.compile(r"\)\(|\)\*(?!\*)|(?<!\*)\*\(")
_NUMBER_TIMES_SUM = re.compile(r"-?\d+\*\(([^()]+)\)")
_BOUNDS = ExpressionBounds(
    names=frozenset(string.ascii_lowercase + "XYZ"),
    powers=True,
    max_chars=8_000,
    max_digits=120,
    max_tokens=2_000,
    max_exponent=200,
    max_degree=400,
)


def _score_expanded(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score an expanded sum, or `2*(x + 3)` if that sum is not in the question."""
    if answer == entry["answer"]:
        return library(answer)
    has_words = any(len(name) > 1 for name in _NAME.findall(answer))
    if has_words or not _EXPRESSION.fullmatch(answer):
        return 0.0
    plain = "".join(answer.split())
    factored = _NUMBER_TIMES_SUM.fullmatch(plain)
    if factored and factored[1] not in "".join(entry["question"].split()):
        return library(answer)
    return 0.0 if _PRODUCT_OF_BRACKETS.search(plain) else library(answer)


POLYNOMIAL_MULTIPLICATION = TaskRules(
    "polynomial_multiplication",
    guard=expression_guard(_BOUNDS),
    fix=ScorerFix(
        fault="A second expression behind `or`, a comment, `expand(...)` and"
        " undone products score 1.0.",
        score=_score_expanded,
    ),
)
