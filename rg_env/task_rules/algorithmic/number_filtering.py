"""number_filtering: the numbers that are kept."""

from __future__ import annotations

import re
from collections import Counter

from rg_env.task_rules.reading.lists import in_quotes, list_of, or_empty
from rg_env.task_rules.rules import Entry, ItemCheck, TaskRules

_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?![\w])")


def _keeps_another_notation(entry: Entry) -> bool:
    """Say whether more of a number is kept than stands in the list, so written."""
    metadata = entry["metadata"]
    return bool(Counter(metadata["result"]) - Counter(metadata["original_numbers"]))


RULES = TaskRules(
    "number_filtering",
    notation=or_empty(list_of(_NUMBER, in_quotes)),
    item_checks=(
        ItemCheck(
            "answer writes a number as another one of the list is written",
            _keeps_another_notation,
        ),
    ),
)
