"""Grids of numbers of which some are given."""

from __future__ import annotations

from typing import Any

import pytest
from fixed_scores import entry_of, mean_score

from rg_env.answers.fixes.number_grids import score_number_grid


def missing_in_order(entry: dict[str, Any]) -> str:
    filled = []
    for row in entry["metadata"]["puzzle"]:
        missing = iter(sorted(set(range(1, len(row) + 1)) - set(row)))
        filled.append(" ".join(str(cell or next(missing)) for cell in row))
    return "\n".join(filled)


@pytest.mark.parametrize(
    ("task", "number"), [("mini_sudoku", 40), ("sudoku", 40), ("futoshiki", 8)]
)
def test_to_fill_each_row_with_what_it_lacks_earns_next_to_nothing(
    task: str, number: int
) -> None:
    made = [entry_of(task, seed) for seed in range(7000, 7000 + number)]
    assert mean_score(task, made, missing_in_order) < 0.25


def test_the_blanks_that_are_right_are_paid_beyond_one_in_each_row() -> None:
    solution = [[1, 2, 3, 4], [3, 4, 1, 2], [2, 1, 4, 3], [4, 3, 2, 1]]
    puzzle = [[1, 0, 0, 0], [0, 4, 0, 2], [0, 1, 0, 3], [4, 0, 0, 1]]
    entry = {"answer": "", "metadata": {"puzzle": puzzle, "solution": solution}}

    def score_of_wrong_rows(*wrong: int) -> float:
        rows = [
            [given or cell % 4 + 1 for given, cell in zip(*pair, strict=True)]
            if number in wrong
            else pair[1]
            for number, pair in enumerate(zip(puzzle, solution, strict=True))
        ]
        answer = "\n".join(" ".join(map(str, row)) for row in rows)
        return score_number_grid(answer, entry, lambda text: 0.95)

    assert score_of_wrong_rows() == 0.95
    assert score_of_wrong_rows(1) == pytest.approx(0.9 * 3 / 5)
    assert score_of_wrong_rows(0, 1) == 0.0
