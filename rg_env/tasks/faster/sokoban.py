"""sokoban: where boxes stand, and whether a board can no longer be solved.

The library's search walks over every square of a board four times for each move tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Shape = tuple[int, int]
Places = list[tuple[int, int]]

WALL, BOX, BOX_ON_GOAL = "+", "@", "$"
FREE_GOALS = "X%"
IMMOVABLE = frozenset((WALL, BOX, BOX_ON_GOAL))


def _all(state: str, square: str) -> Iterator[int]:
    at = state.find(square)
    while at >= 0:
        yield at
        at = state.find(square, at + 1)


def make_find_boxes_and_goals(
    own: Any,
) -> Callable[[str, Shape], tuple[Places, Places, Places]]:
    """Return `find_boxes_and_goals`: rows and columns, in the order of the squares."""

    def find_boxes_and_goals(state: str, shape: Shape) -> tuple[Places, Places, Places]:
        width = shape[1]
        boxes, goals, done = (
            [divmod(at, width) for square in squares for at in _all(state, square)]
            for squares in (BOX, FREE_GOALS, BOX_ON_GOAL)
        )
        goals.sort()
        return boxes, goals, done

    return find_boxes_and_goals


def _lacks_goals(line: str) -> bool:
    """Say whether a line along the outer wall has more boxes than goals for them."""
    return line.count(BOX) > sum(map(line.count, FREE_GOALS))


def make_is_deadlock(own: Any) -> Callable[[str | None, Shape], bool]:
    """Return `is_deadlock`, for boards that are walled all around."""

    def is_deadlock(state: str | None, shape: Shape) -> bool:
        height, width = shape
        if not state or len(state) != height * width:
            return False
        boxes = list(_all(state, BOX))
        for box in boxes:
            is_beside_wall = WALL in (state[box - 1], state[box + 1])
            if is_beside_wall and WALL in (state[box - width], state[box + width]):
                return True
        for box in boxes:
            for aside in (-1, 1):
                if state[box + aside] in IMMOVABLE and any(
                    state[box + off] in IMMOVABLE
                    and state[box + off + aside] in IMMOVABLE
                    for off in (-width, width)
                ):
                    return True
        return any(
            map(
                _lacks_goals,
                (
                    state[width + 1 : 2 * width - 1],
                    state[width * (height - 2) + 1 : width * (height - 1) - 1],
                    state[width + 1 : width * (height - 1) + 1 : width],
                    state[2 * width - 2 : width * height - 2 : width],
                ),
            )
        )

    return is_deadlock
