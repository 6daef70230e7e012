"""cryptarithm: a digit for each letter."""

from __future__ import annotations

import re

from rg_env.task_rules.reading.lists import read_pairs
from rg_env.task_rules.rules import READABLE, Entry, LibraryScore, ScorerFix, TaskRules

_LETTER_AND_DIGIT = re.compile(
    r"([A-Z])\s*(?:=|:|\u2192|\bis\b)\s*([0-9])(?!\w|\.[0-9])"
)


def _each_letter_once(answer: str, entry: Entry, library: LibraryScore) -> float:
    letters = [pair.partition("=")[0].strip() for pair in answer.split(",")]
    value = library(answer)
    return value if len(set(letters)) == len(letters) else min(READABLE, value)


def _in_pairs(answer: str, entry: Entry) -> str:
    pairs = read_pairs(answer, _LETTER_AND_DIGIT, numbered=True)
    if pairs is None:
        return answer
    return ",".join(f"{letter}={digit}" for letter, digit in pairs.items())


RULES = TaskRules(
    "cryptarithm",
    notation=_in_pairs,
    fix=ScorerFix(
        scorer_sha256="09fb8a2afc45aa19347a0966db4e4b0887b4f40a919f8be4f74f3e11dbeaf763",
        fault="Takes the last digit if a letter gets two.",
        score=_each_letter_once,
    ),
)
