"""Grids of numbers of which some are given."""

from __future__ import annotations

import pytest

from rg_env.task_rules.reading.number_grids import score_number_grid
from tests.support.fixed_scores import entry_of, fixed_score


def first_that_fits(entry):
    """Take for each blank the first number that its row and column lack."""
    grid = [list(row) for row in entry["metadata"]["puzzle"]]
    for row in grid:
        for column, given in enumerate(row):
            taken = {*row, *(other[column] for other in grid)}
            free = set(range(1, len(grid) + 1)) - taken
            row[column] = given or min(free, default=1)
    return "\n".join(" ".join(map(str, row)) for row in grid)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "number"), [("mini_sudoku", 40), ("sudoku", 40), ("futoshiki", 8)]
)
def test_what_a_fill_without_solving_has_right_is_worth_next_to_nothing(task, number):
    made = [entry_of(task, seed) for seed in range(7000, 7000 + number)]
    paid = [fixed_score(task, entry, first_that_fits(entry)) for entry in made]
    wrong = [score for score in paid if score < 1.0]
    assert 0.0 < sum(wrong) / len(wrong) < 0.05
    assert max(wrong) <= 0.1


def test_the_blanks_that_are_right_are_paid_beyond_one_in_each_row():
    solution = [[1, 2, 3, 4], [3, 4, 1, 2], [2, 1, 4, 3], [4, 3, 2, 1]]
    puzzle = [[1, 0, 0, 0], [0, 4, 0, 2], [0, 1, 0, 3], [4, 0, 0, 1]]
    entry = {"answer": "", "metadata": {"puzzle": puzzle, "solution": solution}}

    def score_of_wrong_rows(*wrong: int):
        rows = [
            [given or cell % 4 + 1 for given, cell in zip(*pair, strict=True)]
            if number in wrong
            else pair[1]
            for number, pair in enumerate(zip(puzzle, solution, strict=True))
        ]
        answer = "\n".join(" ".join(map(str, row)) for row in rows)
        return score_number_grid(answer, entry, lambda text: 0.95)

    assert score_of_wrong_rows() == 0.5
    assert score_of_wrong_rows(1) == pytest.approx(0.1 * 3 / 5)
    assert score_of_wrong_rows(0, 1) == 0.0
