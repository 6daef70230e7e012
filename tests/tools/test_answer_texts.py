"""Correct answers in other notations, and wrong ones near them."""

import random
import re

import pytest

from tools.answer_texts.near_changes import CHANGES
from tools.answer_texts.sampled_items import SampledItem, levels_of, sampled_items
from tools.answer_texts.surely_wrong import SEVERAL, UNKNOWN, is_right, is_wrong
from tools.correct_answers import full_scores
from tools.gold_solvers.boards import car_moves, frees_the_car


def item_of(task, right):
    return SampledItem(task, 0, {}, {"answer": right, "metadata": {}}, right)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_makes_another_answer_by_chance_alone(change):
    for right in ("123", "4.25", "A B C", "1 2\n3 4", "A,B", "[1, 2]", "word"):
        made = [CHANGES[change](right, random.Random(5)) for _ in range(2)]
        assert made[0] == made[1]
        assert made[0] != right


ANSWERS = """
    gcd            5       = 5.0
    gcd            5       ≠ 6
    gcd            5       ≠ 5 or 6
    gcd            0       = -0
    syllogism      Yes     = YES
    letter_jumble  One two ≠ one two
    word_sorting   a, b    = a,b
    rubiks_cube    R L     ? L R
"""
"""Right answers, and others that are the same (=), wrong (≠) or not known (?)."""


@pytest.mark.parametrize("row", ANSWERS.strip().splitlines())
def test_what_differs_in_meaning_is_wrong(row):
    row = re.fullmatch(r" *(\w+) +(.+?) +([=≠?]) (.+)", row)
    task, right, sign, answer = row.groups()
    wrong = {"=": False, "≠": True, "?": None}[sign]
    assert is_wrong(item_of(task, right), answer) is wrong


@pytest.mark.slow
def test_the_rules_of_a_task_pass_its_right_answers():
    for task in SEVERAL:
        item = next(sampled_items(task, 8))
        assert is_right(item, item.right) is not False, task


@pytest.mark.slow
@pytest.mark.parametrize("task", sorted(SEVERAL - UNKNOWN))
def test_the_rules_of_a_task_refuse_what_is_no_answer(task):
    item = next(sampled_items(task, 9))
    assert is_right(item, f"{item.right} or 7") is False


def test_cars_that_cannot_move_free_nobody():
    params_of = dict(levels_of("rush_hour"))["0"]
    item = next(sampled_items("rush_hour", 4, params_of))
    metadata = item.entry["metadata"]
    moves = car_moves(metadata["board_config"])
    assert moves is not None
    assert frees_the_car(metadata, moves)
    assert not frees_the_car(metadata, f"A+4 {moves}")


def test_our_scorer_ignores_formatting_and_the_library_s_does_not():
    item = next(sampled_items("gcd", 2))
    texts = [item.right, f"<b>{item.right}</b>", "x"]
    found = [[*full_scores(item, text).values()] for text in texts]
    assert found == [[True, True], [False, True], [False, False]]
