"""Boards are those that are found by trying all orders."""

from __future__ import annotations

import itertools
import random

import pytest

from rg_env.task_rules.games.futoshiki import random_solution


def board_by_trying_all_orders(size: int, rng: random.Random) -> list[list[int]]:
    grid: list[list[int]] = []

    def fill() -> bool:
        if len(grid) == size:
            return True
        numbers = list(range(1, size + 1))
        rng.shuffle(numbers)
        for row in itertools.permutations(numbers):
            if all(row[at] != above[at] for above in grid for at in range(size)):
                grid.append(list(row))
                if fill():
                    return True
                grid.pop()
        return False

    assert fill()
    return grid


@pytest.mark.parametrize("size", [1, 2, 4, 6])
def test_boards_of_futoshiki_are_those_found_by_trying_all_orders(size):
    for seed in range(20):
        rng, same = random.Random(seed), random.Random(seed)
        assert random_solution(None, size, rng) == board_by_trying_all_orders(
            size, same
        )
        assert rng.getstate() == same.getstate()
