"""The inverse moves of a cube, and drawings of rectangles."""

import pytest

from rg_env.library import datasets
from rg_env.library.scales import load_shipped
from rg_env.task_rules.cognition import may_show_another_count, unscramble
from tests.support.fixed_scores import fixed_score, run_score

# -- rectangle_count -------------------------------------------------------------------


def drawing(*rectangles):
    """Draw rectangles, each its first and last row and column."""
    width, height = 24, 16
    counts = [[0] * width for _ in range(height)]
    for top, bottom, left, right in rectangles:
        for row in range(top, bottom + 1):
            for column in range(left, right + 1):
                if row in (top, bottom) or column in (left, right):
                    counts[row][column] += 1
    return "".join("".join(" #█"[n] for n in row) + "\n" for row in counts)


ONE_COUNT = """
1 5 2 9
0 2 0 2, 13 15 21 23
1 8 2 9, 4 12 5 20
1 12 2 20, 4 8 5 12
1 6 2 9, 1 6 9 16
3 9 5 12, 3 9 5 12
1 8 2 9, 4 6 5 20
"""
"""Rectangles apart, with overlapping corners, one inside the other, with a common side,
twice the same, and across one side."""

SEVERAL = """
5 9 2 20, 1 14 8 12
5 9 2 20, 4 14 8 12
1 6 2 12, 5 12 2 12
1 3 1 4, 5 9 2 20, 1 14 8 12
"""
"""A cross is two bars or its four arms; common rows may be small squares."""


ROWS = f"{ONE_COUNT.strip()}{SEVERAL.rstrip()}".splitlines()


@pytest.mark.parametrize("row", ROWS)
def test_only_arms_of_a_cross_and_small_squares_give_another_count(row):
    rectangles = [map(int, text.split()) for text in row.split(",") if text]
    has_another = may_show_another_count(drawing(*rectangles))
    assert has_another == (row in SEVERAL)


# -- rubiks_cube -----------------------------------------------------------------------


def test_inverse_moves_solve_a_scrambled_cube_of_every_size():
    for step in load_shipped().scales["rubiks_cube"].steps:
        for seed in range(2):
            entry = datasets.make_entry("rubiks_cube", step.params, seed)
            answer = unscramble(entry["metadata"]["scramble_moves"])
            assert run_score("rubiks_cube", entry, answer, step.params) == 1.0


def test_inverse_moves_do_not_begin_with_a_number():
    assert unscramble("R 2U' Lw 1Fw'") == "F Lw' Uw U' R'"
    assert unscramble("R 3U") is None
    assert unscramble("R X") is None


@pytest.mark.parametrize("more", ["2R", "2R'", "U2'", "42", "hello", "0R", "9R"])
def test_no_text_beside_a_solution_is_ignored(more):
    entry = datasets.make_entry("rubiks_cube", {}, 5)
    gold = entry["metadata"]["example_correct_answer"]
    assert fixed_score("rubiks_cube", entry, gold) == 1.0
    assert fixed_score("rubiks_cube", entry, f"{gold} {more}") == 0.0
