"""Boards, hands and moves of games, by their rules."""

import re

import pytest

from rg_env.reward.score import ScoringRules
from rg_env.task_rules.games.short_answers import (
    result_of_last_round,
    stones_captured_at,
)
from rg_env.task_rules.table import fault_of
from tests.support.fixed_scores import entries, fixed_score

# -- mahjong ---------------------------------------------------------------------------


HANDS = """
    AAX+A Peng  AABC+A Peng  BCX+A Chi   ACX+B Chi
    ABX+C Chi   ABBX+C Chi   ABX+D Pass  AX+A Pass
"""


@pytest.mark.parametrize(
    ("hand", "added", "result"), re.findall(r"(\w+)\+(\w) (\w+)", HANDS)
)
@pytest.mark.parametrize("removed", [0, -1])
def test_the_result_is_that_of_the_hand_before_a_card_is_removed(
    hand, added, result, removed
):
    gone = hand[removed]
    cards = hand.replace(gone, "", 1) + added
    rounds = [{"add": added, "remove": gone, "cards": cards}]
    assert result_of_last_round(rounds) == result


# -- sokoban ---------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("pair", ["{0}\n{1}", "{0}, {1}", "{0}; {1}", "{0} {1}"])
def test_more_moves_behind_a_solution_are_not_paid(pair):
    for entry in entries("sokoban"):
        gold = entry["answer"]
        assert fixed_score("sokoban", entry, pair.format(gold, "LR")) == 0.0
        assert fixed_score("sokoban", entry, pair.format("LR", gold)) == 0.0
        arrows = " -> ".join(gold)
        assert fixed_score("sokoban", entry, pair.format(arrows, "L -> R")) == 0.0


def test_a_solution_in_lines_is_one_walk():
    for entry in entries("sokoban"):
        gold = entry["answer"]
        lines = "\n".join(gold[at : at + 7] for at in range(0, len(gold), 7))
        assert fixed_score("sokoban", entry, lines) == 1.0


# -- tsumego ---------------------------------------------------------------------------

MOST = "capture as many white stones as possible"
ANY = "capture white stones"


def board(text):
    return [list(row) for row in text.split()]


@pytest.mark.parametrize(
    ("text", "captured"),
    [
        (".X. XO. .X.", {"C2": 1}),
        (".X. XOO .X.", {}),
        ("XOO .OX XX.", {"A2": 3}),
        ("XXX O.O XXX", {"B2": 2}),
    ],
)
def test_a_move_captures_all_stones_of_the_groups_without_another_liberty(
    text, captured
):
    assert stones_captured_at(board(text)) == captured


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


@pytest.mark.parametrize("answer", ["G6 = G8", "g6 = g8", "G6: G8", "a1 = G8"])
def test_a_point_is_no_name_of_another(answer):
    normalized = ScoringRules().normalizer("tsumego", item("....", "G8", ANY))
    assert normalized(answer) != "G8"
