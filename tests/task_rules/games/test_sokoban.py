"""Moves of sokoban: one walk in pieces, or several."""

import pytest

from rg_env.task_rules.games.sokoban import MAX_WALKS, walks_of
from tests.support.fixed_scores import entries, fixed_score


@pytest.mark.parametrize(
    ("moves", "between", "walks"),
    [
        ("LRU", ["", ""], ["LRU"]),
        ("LRU", [" -> ", "->"], ["LRU"]),
        ("LRUD", [", ", ",\n", ", "], ["LR", "UD"]),
        ("LRUD", ["], [", ", ", ", "], ["L", "RUD"]),
        (["LR", "U"], [" "], ["LR", "U"]),
        ("L", [], ["L"]),
    ],
)
def test_a_walk_ends_where_something_else_stands_between_the_moves(
    moves, between, walks
):
    assert walks_of(list(moves), between) == walks


@pytest.mark.slow
@pytest.mark.parametrize(
    "pair", ["{0}\n{1}", "{0}, {1}", "{1}\n\n{0}", "{0}; {1}", "{0} {1}"]
)
def test_a_solution_beside_another_walk_is_not_paid(pair):
    for entry in entries("sokoban"):
        gold = entry["answer"]
        assert fixed_score("sokoban", entry, pair.format(gold, "LR")) == 0.0
        arrows = " -> ".join(gold)
        assert fixed_score("sokoban", entry, pair.format(arrows, "L -> R")) == 0.0


def test_a_solution_in_lines_is_one_walk():
    for entry in entries("sokoban"):
        gold = entry["answer"]
        lines = "\n".join(gold[at : at + 7] for at in range(0, len(gold), 7))
        assert fixed_score("sokoban", entry, lines) == 1.0


def test_an_answer_in_very_many_pieces_is_none():
    [entry, *_] = entries("sokoban")
    answer = "LR\n" * MAX_WALKS + entry["answer"]
    assert fixed_score("sokoban", entry, answer) == 0.0
