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
        {
            1: {"filled_cells": 125},
            2: {"filled_cells": 1250},
            3: {"filled_cells": 7840, "grid_size_x": 99, "grid_size_y": 99},
        },
        "every level has the 10 living cells of the defaults, because the share that"
        " it asks for is not read, so that the empty board is right in 99 of 100 items"
        " from level 1 on; and the right answer of level 3 has 20,201 characters",
    ),
    "graph_color": Repair(
        {
            0: {"num_colors": 4, "min_num_vertices": 8, "edge_probability": 0.3},
            1: {"min_num_vertices": 8, "edge_probability": 0.2},
            2: {"min_num_vertices": 10},
            3: {"min_num_vertices": 10},
        },
        "levels 0 and 1 have so few edges that the colors in turn are right in up to 77"
        " of 100 items",
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
    "number_format": Repair(
        {2: {"max_delta": 1.0}, 3: {"max_delta": 0.1}},
        "levels 2 and 3 ask for numbers that differ in fewer decimals than the three"
        " that are made, so that any of them is right",
    ),
}
"""Task to the repair of its curriculum."""

DEAD_KNOBS: Mapping[str, str] = {}
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
