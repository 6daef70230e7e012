"""needle_haystack: who is said to like what."""

from __future__ import annotations

from rg_env.task_rules.rules import Entry, ItemCheck, TaskRules


def _is_said_of_two(entry: Entry) -> bool:
    said = entry["metadata"]["question"].removeprefix("Who ").partition("?")[0]
    return bool(entry["question"].count(f" {said}. ") > 1)


RULES = TaskRules(
    "needle_haystack",
    item_checks=(
        ItemCheck(
            "question says the same of two people",
            _is_said_of_two,
        ),
    ),
)
