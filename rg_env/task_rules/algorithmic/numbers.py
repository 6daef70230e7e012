"""Rules of the algorithmic tasks about numbers, and of jugs."""

from __future__ import annotations

import json
import re
from collections import Counter
from decimal import Decimal

from rg_env.task_rules.one_rule import one_answer
from rg_env.task_rules.reading.lists import in_quotes, list_of
from rg_env.task_rules.reading.values import as_json, read_list
from rg_env.task_rules.reading.words import of_short_text
from rg_env.task_rules.rules import (
    READABLE,
    Entry,
    ItemCheck,
    LevelRepair,
    LibraryScore,
    ScorerFix,
    TaskRules,
)

# -- base_conversion -------------------------------------------------------------------

_TARGET = re.compile(r" to (base-\d+|binary|hexadecimal)\s*$")


def _without_base(answer: str, entry: Entry) -> str:
    """Take off what says again in which base the digits are: `0x` and `_{16}`."""
    asked = _TARGET.search(entry.get("question", ""))
    named = asked[1].removeprefix("base-") if asked else ""
    base = {"binary": "2", "hexadecimal": "16"}.get(named, named)
    digits = answer.removesuffix(f"_{{{base}}}").removesuffix(f"_{base}")
    digits = digits.removeprefix({"2": "0b", "16": "0x"}.get(base, "_"))
    return digits if digits == entry.get("answer") else answer


BASE_CONVERSION = TaskRules("base_conversion", notation=of_short_text(_without_base))


# -- cryptarithm -----------------------------------------------------------------------


CRYPTARITHM = TaskRules(
    "cryptarithm",
    fix=one_answer(any_number=True),
)


# -- jugs ------------------------------------------------------------------------------

_JUG_MOVE = re.compile(r"(?:fill|empty) [A-Z]|pour [A-Z]->[A-Z]")


def _moves_of_jugs(answer: str, entry: Entry, library: LibraryScore) -> float:
    value = library(answer)
    if value <= READABLE:
        return value
    moves = json.loads(answer)
    plain = isinstance(moves, list) and all(
        _JUG_MOVE.fullmatch(" ".join(move.split())) for move in moves
    )
    return value if plain else READABLE


JUGS = TaskRules(
    "jugs",
    notation=as_json,
    fix=ScorerFix(
        fault="Ignores whatever follows a move.",
        score=_moves_of_jugs,
    ),
    item_checks=(
        ItemCheck(
            "answer is that there is none, because the library searches with all jugs"
            " and solves with the first three",
            lambda entry: bool(entry["answer"] == '["No solution"]'),
            always=True,
        ),
    ),
    level_repair=LevelRepair(
        {level: {"num_jugs": 3} for level in (2, 3)},
        "levels 2 and 3 ask for 5 and 7 jugs; finding a puzzle takes seconds to"
        " minutes, and its solver sees three jugs alone, so that the answers are wrong",
    ),
)


# -- number_filtering ------------------------------------------------------------------

_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?!\w)")
_PLAIN = re.compile(rf"\['{_NUMBER.pattern}'(?:, '{_NUMBER.pattern}')*\]")


def _keeps_another_notation(entry: Entry) -> bool:
    """Say whether more of a number is kept than stands in the list, so written."""
    metadata = entry["metadata"]
    return bool(Counter(metadata["result"]) - Counter(metadata["original_numbers"]))


_LISTED = list_of(_NUMBER, in_quotes, may_be_empty=True)


def _values(text: str) -> list[Decimal]:
    return [Decimal(number[0]) for number in _NUMBER.finditer(text)]


def _as_listed(answer: str, entry: Entry) -> str:
    """Write a list of numbers in quotes, and `31.896` as the question's `31.8960`."""
    listed = _LISTED(answer, entry)
    gold = entry.get("answer")
    if not isinstance(gold, str) or not _PLAIN.fullmatch(listed):
        return listed
    return gold if _values(listed) == _values(gold) else listed


NUMBER_FILTERING = TaskRules(
    "number_filtering",
    notation=_as_listed,
    item_checks=(
        ItemCheck(
            "answer writes a number as another one of the list is written",
            _keeps_another_notation,
        ),
    ),
)


# -- number_sorting --------------------------------------------------------------------


def _strings_in_brackets(answer: str, entry: Entry) -> str:
    """Write a list in brackets with single quotes around its elements.

    Without brackets it stays as it is: the question says not to write it so.
    """
    elements = read_list(answer)
    return answer if elements is None else in_quotes(elements)


NUMBER_SORTING = TaskRules(
    "number_sorting",
    notation=_strings_in_brackets,
    fix=one_answer(),
)
