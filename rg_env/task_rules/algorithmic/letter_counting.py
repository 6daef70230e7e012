"""letter_counting: how often a letter occurs in a text."""

from __future__ import annotations

from rg_env.task_rules.common_answers import seldom_answered
from rg_env.task_rules.reading.numbers import as_number
from rg_env.task_rules.rules import Entry, ItemCheck, TaskRules


def _counts_other_case(entry: Entry) -> bool:
    metadata = entry["metadata"]
    letter = metadata["target_letter"]
    counted = sum(word.count(letter) for word in metadata["span"])
    return bool(counted != int(entry["answer"]))


RULES = TaskRules(
    "letter_counting",
    notation=as_number,
    item_checks=(
        ItemCheck(
            "answer counts capital letters, of which the question says nothing",
            _counts_other_case,
        ),
        # 1 is right in 27 to 50 of 100.
        seldom_answered({"1": 2}),
    ),
)
