"""Which functions of the library are replaced; the digests are those of 0.1.25."""

from __future__ import annotations

from typing import Any

from rg_env.task_rules.faster import (
    brainfuck,
    expressions,
    futoshiki,
    knights,
    queens,
    zebra,
)
from rg_env.task_rules.faster.replacing import Replacement
from rg_env.task_rules.table import rules_of

_ZEBRA = "reasoning_gym.logic.contrib.logic_puzzle"
_KNIGHTS = "reasoning_gym.games.knight_swap"
_QUEENS = "reasoning_gym.games.n_queens"
_FUTOSHIKI = "reasoning_gym.games.futoshiki"
_COUNTDOWN = "reasoning_gym.games.countdown"
_COUNTDOWN_DRAW = f"{_COUNTDOWN}:CountdownDataset._generate_candidate_expression"
_PUZZLE24 = "reasoning_gym.games.puzzle24"

REPLACEMENTS: tuple[Any, ...] = (
    Replacement(
        "bfi",
        "parse",
        "41b60155a91ffb77",
        brainfuck.make_parse,
        {"bfi:execute": "7b3fb0b08e91a056"},
    ),
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
        _FUTOSHIKI,
        "FutoshikiDataset._generate_random_solution",
        "737131d3c78962d1",
        futoshiki.make_generate_random_solution,
    ),
    Replacement(
        _COUNTDOWN,
        "CountdownDataset._generate_expression",
        "055d9935e2756578",
        expressions.make_generate_expression,
        {_COUNTDOWN_DRAW: "e15d0363f37087c3"},
    ),
    Replacement(
        _PUZZLE24,
        "Puzzle24Dataset._generate_candidate_expression",
        "585d662564f5cdb9",
        expressions.make_generate_candidate_expression,
        {f"{_PUZZLE24}:Puzzle24Dataset.__getitem__": "46c45afc635fb582"},
    ),
    Replacement(f"{_ZEBRA}.clues", "Clue.__lt__", "4ef3e52dc68ec34e", zebra.make_lt),
    Replacement(
        f"{_ZEBRA}.generate",
        "has_unique_solution",
        "762ae55eada87943",
        zebra.make_has_unique_solution,
    ),
    *rules_of("game_of_life").faster,
)
