"""largest_island: a number of cells."""

from __future__ import annotations

from rg_env.task_rules.reading.numbers import as_number
from rg_env.task_rules.rules import LevelRepair, TaskRules

RULES = TaskRules(
    "largest_island",
    notation=as_number,
    level_repair=LevelRepair(
        {
            0: {
                "max_num_islands": 4,
                "min_island_size": 2,
                "max_island_size": 8,
            }
        },
        "level 0 makes two islands of 5 on a board of 5 by 5, which mostly meet, so"
        " that 10 is right in 53 of 100 items",
    ),
)
