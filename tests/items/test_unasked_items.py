"""Items that were not asked are counted by task and fault, and seldom logged."""

from __future__ import annotations

import pytest

from rg_env.items.unasked_items import UnaskedItems


def test_they_are_counted_by_task_and_fault() -> None:
    unasked = UnaskedItems()
    for said in ("syllogism: its answer is wrong", "syllogism: its answer depends"):
        unasked.add("syllogism", said)
    unasked.add("syllogism", "syllogism: its answer is wrong")
    assert unasked.table() == (
        ["task", "fault", "items"],
        [
            ["syllogism", "its answer depends", 1],
            ["syllogism", "its answer is wrong", 2],
        ],
    )


def test_the_log_says_of_each_fault_how_many_ever_more_seldom(
    logged: pytest.LogCaptureFixture,
) -> None:
    unasked = UnaskedItems()
    for _ in range(120):
        unasked.add("aiw", "aiw: its answer is wrong")
    assert [record.getMessage() for record in logged.records] == [
        "aiw: 1 item was not asked: its answer is wrong",
        "aiw: 10 items were not asked: its answer is wrong",
        "aiw: 100 items were not asked: its answer is wrong",
    ]
    assert {record.levelname for record in logged.records} == {"INFO"}
