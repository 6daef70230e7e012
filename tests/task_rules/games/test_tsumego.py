"""The moves of Black that capture at once."""

import pytest

from rg_env.scoring.scoring_rules import ScoringRules
from rg_env.task_rules.games.tsumego import stones_captured_at
from rg_env.task_rules.table import fault_of
from tests.support.fixed_scores import fixed_score

MOST = "capture as many white stones as possible"
ANY = "capture white stones"


def board(text):
    return [list(row) for row in text.split()]


def test_a_stone_with_one_liberty_is_captured_there():
    assert stones_captured_at(board(".X. XO. .X.")) == {"C2": 1}


def test_a_group_with_two_liberties_is_not():
    assert not stones_captured_at(board(".X. XOO .X."))


def test_a_group_counts_all_its_stones():
    assert stones_captured_at(board("XOO .OX XX.")) == {"A2": 3}


def test_a_move_that_takes_two_groups_counts_both():
    assert stones_captured_at(board("XXX O.O XXX")) == {"B2": 2}


def item(text, answer, question):
    metadata = {"board": board(text)}
    return {"question": question, "answer": answer, "metadata": metadata}


THREE_OR_ONE = "X.OX OOXX XXXO ...."
ONE_OR_ONE = "XOXXOX X.XX.X"


@pytest.mark.parametrize(
    ("text", "answer", "question", "is_used"),
    [
        (THREE_OR_ONE, "B4", MOST, True),
        (THREE_OR_ONE, "D1", MOST, False),
        (THREE_OR_ONE, "B4", ANY, False),
        (ONE_OR_ONE, "B1", MOST, False),
        (ONE_OR_ONE[:3] + " X.X", "B1", ANY, True),
    ],
)
def test_a_question_has_one_best_capture(text, answer, question, is_used):
    assert (fault_of("tsumego", item(text, answer, question)) is None) == is_used


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        *(("D1", 1.0), ("d1", 1.0), ("The answer is D1", 2 / 16)),
        *(("D10", 0.0), ("d10", 0.0), ("AD1", 0.0), ("D1 D2", 0.0), ("D2", 0.05)),
    ],
)
def test_a_point_whose_name_contains_the_right_one_is_another(answer, score):
    assert fixed_score("tsumego", item("....", "D1", ANY), answer) == score


@pytest.mark.parametrize("answer", ["G6 = G8", "g6 = g8", "G6: G8", "a1 = G8"])
def test_a_point_is_no_name_of_another(answer):
    normalized = ScoringRules().normalizer("tsumego", item("....", "G8", ANY))
    assert normalized(answer) != "G8"
