"""Grids of numbers of which some are given."""

from __future__ import annotations

from typing import Any

import pytest
from fixed_scores import entry_of, mean_score


def missing_in_order(entry: dict[str, Any]) -> str:
    filled = []
    for row in entry["metadata"]["puzzle"]:
        missing = iter(sorted(set(range(1, len(row) + 1)) - set(row)))
        filled.append(" ".join(str(cell or next(missing)) for cell in row))
    return "\n".join(filled)


@pytest.mark.parametrize(
    ("task", "number"), [("mini_sudoku", 40), ("sudoku", 40), ("futoshiki", 8)]
)
def test_to_fill_each_row_with_what_it_lacks_earns_no_half_on_average(
    task: str, number: int
) -> None:
    made = [entry_of(task, seed) for seed in range(7000, 7000 + number)]
    assert mean_score(task, made, missing_in_order) < 0.5
