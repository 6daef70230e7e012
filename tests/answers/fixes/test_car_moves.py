"""Moves of rush_hour, played by their rules."""

from __future__ import annotations

from fixed_scores import both_scores, fixed_score

from rg_env.answers.fixes.car_moves import SIDE, read_board
from rg_env.tasks import library


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
