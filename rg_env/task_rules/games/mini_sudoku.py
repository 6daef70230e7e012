"""mini_sudoku: grids of numbers of which some are given."""

from __future__ import annotations

from rg_env.task_rules.reading.grids import DIGIT, grid_of
from rg_env.task_rules.reading.number_grids import number_grid_fix
from rg_env.task_rules.rules import LevelRepair, TaskRules

RULES = TaskRules(
    "mini_sudoku",
    notation=grid_of(DIGIT, compact=True),
    fix=number_grid_fix(
        "164175209dc0eaa4a8b126280fcd17d96a3c42b6c7186fd4b3ccd1519a516517"
    ),
    level_repair=LevelRepair(
        {
            **{level: {"min_empty": 8, "max_empty": 9 + level} for level in (0, 1, 2)},
            **{level: {"min_empty": 8} for level in (3, 4)},
        },
        "every level has puzzles with 4 blanks, mostly one in a row, so that rows"
        " filled at random scored up to 0.61",
    ),
)
