"""Boards, hands and moves of games, by their rules."""

import pytest

from rg_env.reward.score import ScoringRules
from tests.support.fixed_scores import entries, fixed_score

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


@pytest.mark.parametrize("answer", ["G6 = G8", "g6 = g8", "G6: G8", "a1 = G8"])
def test_a_point_is_no_name_of_another(answer):
    normalized = ScoringRules().normalizer("tsumego", {"answer": "G8"})
    assert normalized(answer) != "G8"
