"""Correct answers in other notations, and wrong ones near them."""

import random
import re

import pytest

from tools.answer_texts.near_changes import CHANGES
from tools.answer_texts.sampled_items import (
    DEFAULTS,
    SampledItem,
    car_moves,
    frees_the_car,
    sampled_items,
)
from tools.answer_texts.surely_wrong import SEVERAL, UNKNOWN, is_right, is_wrong
from tools.correct_answers import scores


def item_of(task, right):
    return SampledItem(task, DEFAULTS, 0, {}, {"answer": right, "metadata": {}}, right)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_makes_another_answer_by_chance_alone(change):
    for right in ("123", "4.25", "A B C", "1 2\n3 4", "A,B", "[1, 2]", "word"):
        made = [CHANGES[change](right, "77", random.Random(5)) for _ in range(2)]
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
        for item in sampled_items(task, [DEFAULTS], 1, 7):
            assert is_right(item, item.right) is not False, task


@pytest.mark.slow
@pytest.mark.parametrize("task", sorted(SEVERAL - UNKNOWN))
def test_the_rules_of_a_task_refuse_what_is_no_answer(task):
    item = sampled_items(task, [DEFAULTS], 1, 8)[0]
    assert is_right(item, f"{item.right} or 7") is False


def test_cars_that_cannot_move_free_nobody():
    config = sampled_items("rush_hour", [0.0], 1, 3)[0].entry["metadata"][
        "board_config"
    ]
    moves = car_moves(config)
    assert moves is not None
    assert frees_the_car(config, moves)
    assert not frees_the_car(config, f"A+4 {moves}")


def test_three_scorers_score_the_same_answers():
    item = sampled_items("gcd", [DEFAULTS], 1, 1)[0]
    found = scores(item, [item.right, f"<b>{item.right}</b>", "x"])
    assert found["library"] == [1.0, pytest.approx(0.2, abs=0.1), 0.0]
    assert found["exact"][0] == 1.0 > found["exact"][1]
    assert found["normalized"] == [1.0, 1.0, 0.0]
