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
    "caesar_cipher": Repair(
        {level: {"max_rotation": 25} for level in (2, 3)},
        "levels 2 and 3 ask for rotations up to 50, and an alphabet has 25",
    ),
    "game_of_life": Repair(
        {3: {"grid_size_x": 99, "grid_size_y": 99}},
        "the right answer of level 3 has 20,201 characters, and an answer may have"
        " 20,000",
    ),
    "game_of_life_halting": Repair(
        {level: {"grid_size_x": 30, "grid_size_y": 30} for level in (2, 3)},
        "levels 2 and 3 ask for boards of more than 1,000 cells, and the question shows"
        " 36 cells of those",
    ),
    "jugs": Repair(
        {level: {"num_jugs": 3} for level in (2, 3)},
        "levels 2 and 3 ask for 5 and 7 jugs; finding a puzzle takes seconds to"
        " minutes, and its solver sees three jugs alone, so that the answers are wrong",
    ),
    "knight_swap": Repair(
        {
            **{level: {"min_nodes": 6, "max_nodes": 7} for level in (0, 1)},
            **{level: {"min_nodes": 6} for level in (2, 3, 4)},
        },
        "every level asks for boards from 4 squares on, and the task wants 6; with 6"
        " alone, as at levels 0 and 1, a puzzle takes seconds to find",
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
    "rubiks_cube": Repair(
        {level: {"cube_size": 5} for level in (3, 4)},
        "level 3 asks for a cube of 6, whose inner layers no answer can turn, because"
        " the scorer drops moves that begin with a number; level 4 asks for 7, and the"
        " task takes 6 at most",
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
}
"""Task to the repair of its curriculum."""

DEAD_KNOBS: Mapping[str, str] = {
    "self_reference": "its generator takes the difficulty and does not use it",
}
"""Task to the reason why its items do not change with the level."""

NO_SCALE: Mapping[str, str] = {
    "acre": "the library has no curriculum for it, and its one parameter chooses"
    " between training and test items",
    "composite": "it is a mixture; its items take the level of the task that made them",
    "gsm_symbolic": "the library has no curriculum for it, and its difficulty takes"
    " the value 1.0 alone",
    "list_functions": "the library has no curriculum and no parameter for it",
}
"""Task to the reason why it has no scale."""


def no_scale_reason(task: str) -> str:
    """Return why a task has no scale."""
    return NO_SCALE.get(task, "the installed library has no curriculum for it")
