"""What copies its question or always says the same is seldom right in what is asked."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from rg_env.task_rules.table import fault_of
from rg_env.tasks import datasets
from rg_env.tasks.scales import load_shipped

Entry = dict[str, Any]
SCALES = load_shipped().scales
ITEMS = 40

CHEAP: Mapping[str, Callable[[Entry], str]] = {
    "knight_swap": lambda entry: "No",
    "maze": lambda entry: "5",
    "number_sequence": lambda entry: str(entry["metadata"]["sequence"][-2]),
    "pool_matrix": lambda entry: entry["question"].partition(":\n")[2].strip(),
    "products": lambda entry: "0",
    "rotate_matrix": lambda entry: entry["question"].partition(":\n")[2].strip(),
    "rotten_oranges": lambda entry: "-1",
    "shortest_path": lambda entry: "infeasible",
    "string_insertion": lambda entry: entry["metadata"]["string"],
    "string_manipulation": lambda entry: entry["metadata"]["string"],
}
"""Task to what answers its items without a thought."""

SLOW = {"knight_swap"}
"""There only the last step is looked at, which is the quickest."""


def asked(task: str, params: Mapping[str, Any]) -> list[Entry]:
    entries = datasets.usable_entries(task, params, itertools.count(1_000))
    return list(itertools.islice(entries, ITEMS))


@pytest.mark.slow
@pytest.mark.parametrize("task", CHEAP)
def test_a_thoughtless_answer_is_right_in_few_items(task: str) -> None:
    first, *_, last = SCALES[task].steps
    configs = [last.params] if task in SLOW else [{}, first.params]
    for params in configs:
        paid = [CHEAP[task](entry) == entry["answer"] for entry in asked(task, params)]
        assert sum(paid) <= 0.4 * ITEMS


def test_an_answer_that_is_too_common_stays_among_the_answers() -> None:
    paths = [entry["answer"] for entry in asked("shortest_path", {})]
    assert 0 < paths.count("infeasible") < ITEMS / 3


def test_which_entries_are_asked_is_the_same_each_time() -> None:
    entries = [
        {"question": f"grid {number}", "answer": "infeasible"} for number in range(50)
    ]
    once, again = (
        [fault_of("shortest_path", entry) for entry in entries] for _ in range(2)
    )
    assert once == again
    assert None in once and any(once)
