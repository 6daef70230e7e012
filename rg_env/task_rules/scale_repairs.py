"""What is known of the library's levels and cannot be found by probing them.

Repairs: parameters that make a level usable which the library itself refuses, or one
that it accepts and that pays for guessing. Dead knobs: curricula whose only parameter
the generator does not read. And the tasks that have no scale at all.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any


@dataclasses.dataclass(frozen=True)
class Repair:
    """Parameters that are set instead of those of the library's curriculum.

    Attributes:
        overrides: Level of the library's curriculum to parameters and values.
        reason: What is wrong with the library's, in plain words.
    """

    overrides: Mapping[int, Mapping[str, Any]]
    reason: str


REPAIRS: Mapping[str, Repair] = {
    "boxnet": Repair(
        {level: {"min_row_num": 2, "min_column_num": 2} for level in range(9)},
        "every level asks for grids from one row on, and on a grid of one or two"
        " squares most boxes stand at their targets, so that moving those alone"
        " earned 0.53",
    ),
    "coin_flip": Repair(
        {level: {"max_trials": 5} for level in (0, 1)},
        "level 0 has 8 different questions, and 0.125 is right in 45 of 100 items",
    ),
    "knight_swap": Repair(
        {
            **{level: {"min_nodes": 6, "max_nodes": 7} for level in (0, 1)},
            **{level: {"min_nodes": 6} for level in (2, 3, 4)},
        },
        "every level asks for boards from 4 squares on, and the task wants 6; with 6"
        " alone, as at levels 0 and 1, a puzzle takes seconds to find",
    ),
    "largest_island": Repair(
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
    "mini_sudoku": Repair(
        {
            **{level: {"min_empty": 8, "max_empty": 9 + level} for level in (0, 1, 2)},
            **{level: {"min_empty": 8} for level in (3, 4)},
        },
        "every level has puzzles with 4 blanks, mostly one in a row, so that rows"
        " filled at random earned up to 0.61",
    ),
    "modulo_grid": Repair(
        {
            0: {"max_holes": 10},
            1: {"max_target": 2, "max_holes": 15},
            2: {"max_holes": 20},
            3: {"max_holes": 40},
            4: {"max_holes": 50},
            5: {"max_holes": 100},
        },
        "level 1 asks for a target of at most 0, and the task wants 1; and with so few"
        " holes the commoner sign in all of them is right in up to 57 of 100 items",
    ),
    "n_queens": Repair(
        {0: {"n": 5}, 1: {"n": 7, "max_remove": 6}},
        "a board of 4 has two solutions and one of 6 four, and all queens may be"
        " removed, so that one board is right in up to 70 of 100 items",
    ),
    "propositional_logic": Repair(
        {0: {"max_vars": 4, "max_statements": 4, "max_complexity": 2}},
        "level 0 has four different questions in 30, whose premises are letters, and"
        " with three letters one disjunction is worth 0.38",
    ),
    "rubiks_cube": Repair(
        {level: {"cube_size": 5} for level in (3, 4)},
        "level 3 asks for a cube of 6, whose inner layers no answer can turn, because"
        " the scorer drops moves that begin with a number; level 4 asks for 7, and the"
        " task takes 6 at most",
    ),
    "shortest_path": Repair(
        {level: {"p_blocked": 0.3} for level in range(4)},
        "with the default's two blocked cells in five there is no path in 51 to 72 of"
        " 100 boards of these sizes",
    ),
    "sokoban": Repair(
        {0: {"min_boxes": 3, "max_boxes": 4}},
        "level 0 asks for the default's 4 to 10 boxes on a board of 6 by 6, and none is"
        " found in 20 s",
    ),
    "survo": Repair(
        {2: {"min_board_size": 5}, 3: {"min_board_size": 6}},
        "levels 2 and 3 ask for more empty cells than their smallest board has",
    ),
    "syllogism": Repair(
        {0: {"allow_no": True}},
        "level 0 has statements about all alone, of which Yes is right for 93 of 100",
    ),
    "tower_of_hanoi": Repair(
        {0: {"max_disks": 4}},
        "level 0 has six different questions",
    ),
}
"""Task to the repair of its curriculum."""

DEAD_KNOBS: Mapping[str, str] = {
    "self_reference": "its generator takes the difficulty and does not use it",
}
"""Task to the reason why its items do not change with the level."""

NO_SCALE: Mapping[str, str] = {}
"""Task to the reason why it has no scale."""


def no_scale_reason(task: str) -> str:
    """Return why a task has no scale."""
    return NO_SCALE.get(task, "the installed library has no curriculum for it")
