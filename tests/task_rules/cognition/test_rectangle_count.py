"""Drawings of rectangles, and whether another number of them draws the same."""

from __future__ import annotations

import pytest

from rg_env.task_rules.cognition.rectangle_count import may_show_another_count


def drawing(*rectangles: tuple[int, int, int, int]):
    """Draw rectangles, each its first and last row and column."""
    width, height = 24, 16
    counts = [[0] * width for _ in range(height)]
    for top, bottom, left, right in rectangles:
        for row in range(top, bottom + 1):
            for column in range(left, right + 1):
                if row in (top, bottom) or column in (left, right):
                    counts[row][column] += 1
    return "".join("".join(" #█"[n] for n in row) + "\n" for row in counts)


@pytest.mark.parametrize(
    "rectangles",
    [
        [(1, 5, 2, 9)],
        [(0, 2, 0, 2), (13, 15, 21, 23)],
        [(1, 8, 2, 9), (4, 12, 5, 20)],  # corner over corner
        [(1, 12, 2, 20), (4, 8, 5, 12)],  # one inside of the other
        [(1, 6, 2, 9), (1, 6, 9, 16)],  # a side in common
        [(3, 9, 5, 12), (3, 9, 5, 12)],
        [(1, 8, 2, 9), (4, 6, 5, 20)],  # through one side
    ],
)
def test_most_drawings_show_one_number(rectangles):
    assert not may_show_another_count(drawing(*rectangles))


@pytest.mark.parametrize(
    "rectangles",
    [
        [(5, 9, 2, 20), (1, 14, 8, 12)],  # a cross: two bars or its four arms
        [(5, 9, 2, 20), (4, 14, 8, 12)],  # an arm of two rows
        [(1, 6, 2, 12), (5, 12, 2, 12)],  # the rows in common may be small squares
        [(1, 3, 1, 4), (5, 9, 2, 20), (1, 14, 8, 12)],
    ],
)
def test_arms_of_a_cross_and_small_squares_are_rectangles_too(rectangles):
    assert may_show_another_count(drawing(*rectangles))
