"""The colors that a side of a turned cube can have."""

import pytest

from rg_env.task_rules.cognition.color_cube_rotation import SIDES, possible_colors

CUBE = {side: side for side in SIDES}


@pytest.mark.parametrize("side", SIDES)
def test_after_quarter_turns_each_side_has_one_color(side):
    assert len(possible_colors(CUBE, ["front", "left", "back"], side)) == 1


def test_a_quarter_turn_moves_four_sides():
    after = {side: possible_colors(CUBE, ["front"], side).pop() for side in SIDES}
    moved = {"top": "front", "front": "bottom", "bottom": "back", "back": "top"}
    assert after == {**CUBE, **moved}


@pytest.mark.parametrize("side", ["front", "back", "left", "right"])
def test_half_a_turn_leaves_open_which_sides_change_places(side):
    assert len(possible_colors(CUBE, ["bottom"], side)) == 2


@pytest.mark.parametrize("side", ["top", "bottom"])
def test_half_a_turn_tells_top_and_bottom(side):
    assert len(possible_colors(CUBE, ["bottom"], side)) == 1
