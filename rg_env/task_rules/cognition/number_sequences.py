"""number_sequence: the next number."""

from __future__ import annotations

from rg_env.task_rules.common_answers import seldom
from rg_env.task_rules.reading.numbers import as_number
from rg_env.task_rules.rules import Entry, TaskRules


def _repeats_one_of_the_last_two(entry: Entry) -> bool:
    sequence = entry["metadata"]["sequence"]
    return sequence[-1] in sequence[-3:-1]


RULES = TaskRules(
    "number_sequence",
    notation=as_number,
    item_checks=(
        seldom(
            "next number is one of the last two",
            _repeats_one_of_the_last_two,  # 48 of 100 at 1.0
            one_in=3,
        ),
    ),
)
