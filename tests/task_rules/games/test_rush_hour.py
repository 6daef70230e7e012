"""Moves of rush_hour, played by their rules."""

from __future__ import annotations

import pytest

from rg_env.task_rules.games.rush_hour import SIDE, read_board
from rg_env.tasks import library
from tests.support.fixed_scores import both_scores, fixed_score


def solve_cars(config: str) -> str:
    """Search for moves that free the red car, breadth first."""
    cars, walls = read_board(config)
    start = tuple((letter, *cars[letter]) for letter in sorted(cars))
    waiting, seen = [(start, "")], {start}
    for state, moves in waiting:
        taken = {cell for _, *cells in state for cell in cells} | walls
        if (2, SIDE - 1) in state[0]:
            return moves.strip()
        for index, (letter, *cells) in enumerate(state):
            down = int(cells[0][0] != cells[1][0])
            for sign in (1, -1):
                moved = [(r + sign * down, c + sign * (1 - down)) for r, c in cells]
                free = taken.isdisjoint(set(moved) - set(cells))
                if not free or not all(0 <= i < SIDE for cell in moved for i in cell):
                    continue
                after = (*state[:index], (letter, *moved), *state[index + 1 :])
                if after not in seen:
                    seen.add(after)
                    waiting.append((after, f"{moves} {letter}{sign:+d}"))
    raise AssertionError("no solution")


def test_a_legal_solution_frees_the_car_and_a_blocked_move_spoils_it() -> None:
    params = {"min_moves": 1, "max_moves": 8}
    for seed in range(3):
        entry = library.make_entry("rush_hour", params, seed)
        moves = solve_cars(entry["metadata"]["board_config"])
        assert fixed_score("rush_hour", entry, moves) == 1.0
        assert both_scores("rush_hour", entry, f"{moves} A+4") == (1.0, 0.01)
        assert fixed_score("rush_hour", entry, f"{moves} or not") == 0.0


BOARD = "oooooo ooooBo AAooBo oooooo oooooo CCoooo".replace(" ", "")
"""A has four cells to go, once B is two rows down."""


@pytest.mark.parametrize(
    "moves",
    [
        *("B+2 A+4", "B+2 A+5", "B+2 A+6", "B+2 A+4 A+2", "B+2 A+4 C+1", "B+2 A+4 B-1"),
        "B+2 A+3 C+2 A+1",
    ],
)
def test_what_happens_once_the_red_car_is_out_costs_nothing(moves: str) -> None:
    entry = {"metadata": {"board_config": BOARD}}
    assert fixed_score("rush_hour", entry, moves) == 1.0


@pytest.mark.parametrize(
    "moves",
    [
        *("B+2 A+7", "B+2 A+4 A+3", "B+2 A+3", "A+4", "A+6 B+2", "B+2 A+4 A-1"),
        *("B+2 A+6 A-1", "B+2 A+4 C-1", "B+2 A+4 C+9", "B+2 A+4 F+1"),
        "B+2 C+3 A+4 B+4",
    ],
)
def test_a_move_that_is_impossible_is_one_after_the_exit_too(moves: str) -> None:
    entry = {"metadata": {"board_config": BOARD}}
    assert fixed_score("rush_hour", entry, moves) == 0.01
