"""Entries whose answer is not the right one, not the only one or cannot be known."""

from __future__ import annotations

from rg_env.tasks.item_checks.item_check import ItemCheck

CHECKS: tuple[ItemCheck, ...] = (
    ItemCheck(
        "codeio",
        "answer holds the address of an object, which is another in each process",
        lambda entry: " at 0x" in entry["question"] + entry["answer"],
    ),
    ItemCheck(
        "jugs",
        "answer is that there is none, because the library searches with all jugs"
        " and solves with the first three",
        lambda entry: bool(entry["answer"] == '["No solution"]'),
    ),
)
