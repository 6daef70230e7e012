"""Which functions of the library are replaced; the digests are those of 0.1.25."""

from __future__ import annotations

from rg_env.tasks.faster import brainfuck, knights, life, queens, zebra
from rg_env.tasks.faster.replacing import Replacement

_ZEBRA = "reasoning_gym.logic.contrib.logic_puzzle"
_KNIGHTS = "reasoning_gym.games.knight_swap"
_QUEENS = "reasoning_gym.games.n_queens"

REPLACEMENTS = (
    Replacement("bfi", "execute", "7b3fb0b08e91a056", brainfuck.make_execute),
    Replacement("cellpylib", "evolve2d", "8cdd09deb4158caf", life.make_evolve2d),
    Replacement(
        _QUEENS,
        "NQueensDataset._get_all_solutions",
        "f7bf1aaf33f46cf9",
        queens.make_get_all_solutions,
    ),
    Replacement(
        _KNIGHTS,
        "KnightSwapLogic.solve_swap",
        "c8790a24b325cf2f",
        knights.make_solve_swap,
    ),
    Replacement(f"{_ZEBRA}.clues", "Clue.__lt__", "4ef3e52dc68ec34e", zebra.make_lt),
    Replacement(
        f"{_ZEBRA}.generate",
        "has_unique_solution",
        "762ae55eada87943",
        zebra.make_has_unique_solution,
    ),
)
