"""Which functions of the library are replaced; the digests are those of 0.1.25."""

from __future__ import annotations

from rg_env.tasks.faster import (
    brainfuck,
    futoshiki,
    knights,
    life,
    queens,
    sokoban,
    zebra,
)
from rg_env.tasks.faster.replacing import Replacement

_ZEBRA = "reasoning_gym.logic.contrib.logic_puzzle"
_KNIGHTS = "reasoning_gym.games.knight_swap"
_QUEENS = "reasoning_gym.games.n_queens"
_FUTOSHIKI = "reasoning_gym.games.futoshiki"
_SOKOBAN = "reasoning_gym.games.contrib.sokoban.src"

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
    Replacement(
        _FUTOSHIKI,
        "FutoshikiDataset._remove_clues",
        "7341e90c862527b4",
        futoshiki.make_remove_clues,
    ),
    Replacement(
        f"{_SOKOBAN}.astar", "is_deadlock", "e76814cd034f7f78", sokoban.make_is_deadlock
    ),
    Replacement(
        f"{_SOKOBAN}.utils",
        "find_boxes_and_goals",
        "51fb996968d6f4e3",
        sokoban.make_find_boxes_and_goals,
    ),
    Replacement(f"{_ZEBRA}.clues", "Clue.__lt__", "4ef3e52dc68ec34e", zebra.make_lt),
    Replacement(
        f"{_ZEBRA}.generate",
        "has_unique_solution",
        "762ae55eada87943",
        zebra.make_has_unique_solution,
    ),
)
