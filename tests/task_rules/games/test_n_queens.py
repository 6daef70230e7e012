"""All boards of queens are found."""

import importlib

import pytest

from rg_env.tasks import library

QUEENS = {1: 1, 2: 0, 3: 0, 4: 2, 5: 10, 6: 4, 7: 40, 8: 92, 9: 352}
"""Ways to place n queens, sequence A000170."""


@pytest.mark.parametrize("n", QUEENS)
def test_all_boards_of_queens_are_found_in_the_order_of_their_columns(n):
    library.describe()
    games = importlib.import_module("reasoning_gym.games.n_queens")
    boards = games.NQueensDataset._get_all_solutions(None, n)
    placed = [tuple(row.index("Q") for row in board) for board in boards]
    assert len(placed) == QUEENS[n] and placed == sorted(set(placed))
    for columns in placed:
        falling = {column - row for row, column in enumerate(columns)}
        rising = {column + row for row, column in enumerate(columns)}
        assert len(set(columns)) == len(falling) == len(rising) == n
