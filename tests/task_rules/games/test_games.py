"""Walks in sokoban, and points in tsumego."""

import pytest

from rg_env.reward.score import ScoringRules
from tests.support.fixed_scores import entries, fixed_score

# -- sokoban ---------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("between", ["\n", ", ", "; ", " "])
def test_more_moves_after_a_solution_score_0(between):
    for entry in entries("sokoban"):
        gold = entry["answer"]
        arrows = " -> ".join(gold)
        for pair in ((gold, "LR"), ("LR", gold), (arrows, "L -> R")):
            assert fixed_score("sokoban", entry, between.join(pair)) == 0.0


def test_a_solution_in_lines_is_one_walk():
    for entry in entries("sokoban"):
        gold = entry["answer"]
        lines = "\n".join(gold[at : at + 7] for at in range(0, len(gold), 7))
        assert fixed_score("sokoban", entry, lines) == 1.0


# -- tsumego ---------------------------------------------------------------------------


@pytest.mark.parametrize("answer", ["G6 = G8", "g6 = g8", "G6: G8", "a1 = G8"])
def test_a_point_does_not_name_another_one(answer):
    normalized = ScoringRules().build_normalizer("tsumego", {"answer": "G8"})
    assert normalized(answer) != "G8"
