"""The colors that a side of a turned cube can have.

"The bottom is now at the top" is half a turn, forward or to the side: the sides that it
brings to the front and to the right are not the same.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from rg_env.task_rules.rules import Entry, ItemCheck, TaskRules

SIDES = ("top", "bottom", "front", "back", "left", "right")
_CYCLES = {
    "front": ("front", "bottom", "back", "top"),
    "back": ("back", "bottom", "front", "top"),
    "left": ("left", "bottom", "right", "top"),
    "right": ("right", "bottom", "left", "top"),
}
_HALF_TURNS = (("front", "front"), ("left", "left"))

Cube = tuple[str, ...]
"""The color of each side, in the order of `SIDES`."""


def _turned(cube: Cube, side: str) -> Cube:
    """Return a cube of which a side was brought to the top by a quarter turn."""
    colors = dict(zip(SIDES, cube, strict=True))
    one, two, three, top = _CYCLES[side]
    moved = {top: one, one: two, two: three, three: top}
    return tuple(colors[moved.get(place, place)] for place in SIDES)


def possible_colors(
    colors: Mapping[str, str], to_the_top: Sequence[str], side: str
) -> set[str]:
    """Return the colors that a side can have in the end.

    Each turn brings a side to the top; `colors` are those of the beginning.
    """
    cubes = {tuple(colors[place] for place in SIDES)}
    for brought in to_the_top:
        ways = _HALF_TURNS if brought == "bottom" else ((brought,),)
        cubes = {functools.reduce(_turned, way, cube) for cube in cubes for way in ways}
    return {cube[SIDES.index(side)] for cube in cubes}


def _turns_either_way(entry: Entry) -> bool:
    names = ("initial_state", "rotations", "target_side")
    return len(possible_colors(*(entry["metadata"][name] for name in names))) > 1


RULES = TaskRules(
    "color_cube_rotation",
    item_checks=(
        ItemCheck(
            "answer depends on the way of a half turn, which the question does not say",
            _turns_either_way,
        ),
    ),
)
