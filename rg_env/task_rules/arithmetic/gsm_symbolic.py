"""gsm_symbolic: the number that a story asks for."""

from __future__ import annotations

import re

from rg_env.task_rules.reading.filler_words import is_wrapper
from rg_env.task_rules.reading.numbers import as_number, with_unit
from rg_env.task_rules.reading.sums import exact_value
from rg_env.task_rules.rules import Entry, ItemCheck, LibraryScore, ScorerFix, TaskRules

_FIRST_NUMBER = re.compile(r"-?\b\d+(?:\.\d+)?\b")
_PERCENT = re.compile("%|percent")
_DOLLARS = re.compile(r"^\\?\$\s?(?=[\d.])|(?<=\d)\s*(?:dollars?|USD)$")
_IN_DOLLARS = with_unit(_DOLLARS)


def _asked(entry: Entry) -> str:
    """Return the sentence that asks, without its question mark."""
    return str(entry.get("question", "")).rpartition("?")[0].rpartition(". ")[2]


def _only_number(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score a number with its sign, if there is no other.

    Where the right number is negative the library scores 0, and this 1.0.
    """
    asked = _asked(entry)
    bare = _PERCENT.sub(" ", answer) if _PERCENT.search(asked) else answer
    number = _FIRST_NUMBER.search(bare)
    if number is None or not is_wrapper(bare, number[0], asked):
        return 0.0
    if number[0].startswith("-"):
        return float(float(number[0]) == float(entry["answer"]))
    return library(answer)


def _with_its_unit(answer: str, entry: Entry) -> str:
    """Write the right number; dollars may be named where they are asked for."""
    has_dollars = re.search(r"\$|dollar|USD", str(entry.get("question", "")))
    other = re.search(r"how many (?!dollars)", _asked(entry), re.IGNORECASE)
    return (_IN_DOLLARS if has_dollars and not other else as_number)(answer, entry)


_STEP = re.compile(r"([\d.]+(?:\s*[-+*/]\s*[\d.]+)+)\s*=\s*(\d+)(?![\d.])")
"""A step of the library's solution, `5*0.5=2`, with a whole number."""


def _rounds_down(entry: Entry) -> bool:
    steps = _STEP.findall(entry["metadata"]["answer_cot"])
    values = [(exact_value(sides), int(whole)) for sides, whole in steps]
    return any(v is not None and v // 1 == n != v for v, n in values)


RULES = TaskRules(
    "gsm_symbolic",
    notation=_with_its_unit,
    fix=ScorerFix(
        scorer_sha256="39d8f8174f9dad30e1fff8a01577ef74fc809f9cc0f3a148e112cdb43e49abcd",
        fault="Takes the first number without its sign and ignores what follows.",
        score=_only_number,
    ),
    item_checks=(ItemCheck("solution rounds a part of a thing down", _rounds_down),),
    fixed_level=(
        "the library has no curriculum for it, and its difficulty takes"
        " the value 1.0 alone"
    ),
    is_rebuilt=True,
)
