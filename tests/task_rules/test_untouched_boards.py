"""Boards on which doing nothing is right, and graphs that any coloring fits."""

from __future__ import annotations

import pytest

from rg_env.task_rules.cognition import is_filled_by_one_sign
from rg_env.task_rules.table import fault_of


def boxes(*squares: list[str]):
    state = {str(number): things for number, things in enumerate(squares)}
    return {"metadata": {"initial_state": state}}


@pytest.mark.parametrize(
    ("squares", "is_faulty"),
    [
        ([["box_red", "target_red"], []], True),
        ([["box_red"], ["target_red"]], False),
        ([["box_red", "target_blue"], ["target_red", "box_blue"]], False),
        ([["box_red", "box_red", "target_red"], ["box_blue", "target_red"]], False),
        ([["box_red", "box_red", "target_red", "target_red"], ["box_red"]], True),
    ],
)
def test_boxes_at_their_targets_are_counted(squares, is_faulty):
    assert bool(fault_of("boxnet", boxes(*squares))) == is_faulty


@pytest.mark.parametrize(
    ("first", "last", "is_faulty"),
    [
        ("[[0,1],\n [0,0]]", "[[0,0],[0,0]]", True),
        ("[[0,1],\n [1,0]]", "[[0,1],[1,0]]", True),
        ("[[0,1],\n [1,0]]", "[[0,1],[0,0]]", False),
    ],
)
def test_a_last_board_that_is_empty_or_the_first_is_found(first, last, is_faulty):
    entry = {"question": f"What becomes of it?\n\n{first}.", "answer": last}
    assert bool(fault_of("game_of_life", entry)) == is_faulty


@pytest.mark.parametrize(("edges", "is_faulty"), [(0, True), (4, True), (6, False)])
def test_a_graph_of_few_edges_is_colored_by_chance(edges, is_faulty):
    puzzle = {
        "vertices": list(range(10)),
        "edges": [(0, n + 1) for n in range(edges)],
        "color_options": [1, 2, 3],
    }
    assert bool(fault_of("graph_color", {"metadata": {"puzzle": puzzle}})) == is_faulty


@pytest.mark.parametrize(
    ("answer", "is_faulty"), [("✅✅\n✅❌", True), ("✅❌\n✅❌", False)]
)
def test_a_grid_whose_blanks_hold_its_commoner_sign_is_found(answer, is_faulty):
    entry = {"question": "Fill it:\n\n✅❔\n✅❌", "answer": answer}
    assert is_filled_by_one_sign(entry) == is_faulty
