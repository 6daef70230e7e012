"""number_sorting: numbers in order."""

from __future__ import annotations

import json

from rg_env.task_rules.reading.lists import in_quotes
from rg_env.task_rules.reading.values import read_list
from rg_env.task_rules.rules import (
    Entry,
    LibraryScore,
    ScorerFix,
    TaskRules,
)


def _values(text: str) -> list[float]:
    return [float(number) for number in json.loads(text.replace("'", '"'))]


def _numbers(answer: str, entry: Entry, library: LibraryScore) -> float:
    value = library(answer)
    return value if value and _values(answer) == _values(entry["answer"]) else 0.0


def _strings_in_brackets(answer: str, entry: Entry) -> str:
    """Write a list in brackets with single quotes around its elements.

    Without brackets it stays as it is: the question says not to write it so.
    """
    elements = read_list(answer)
    return answer if elements is None else in_quotes(elements)


RULES = TaskRules(
    "number_sorting",
    notation=_strings_in_brackets,
    fix=ScorerFix(
        scorer_sha256="3f7732ea4cbf05a9c0902407457e283937adbbf14b0bb5b212540b7455c9fb06",
        fault="Sorted numbers within 1 of the right ones score 1.0, and so does NaN.",
        score=_numbers,
    ),
)
