"""number_filtering: the numbers that are kept."""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal

from rg_env.task_rules.reading.lists import in_quotes, list_of
from rg_env.task_rules.rules import Entry, ItemCheck, TaskRules

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


RULES = TaskRules(
    "number_filtering",
    notation=_as_listed,
    item_checks=(
        ItemCheck(
            "answer writes a number as another one of the list is written",
            _keeps_another_notation,
        ),
    ),
)
