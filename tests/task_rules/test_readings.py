"""Every answer that a question admits is right, and no other."""

import pytest

from rg_env.library import datasets
from tests.support.fixed_scores import run_score
from tools.gold_solvers.boards import manipulated, pooled
from tools.gold_solvers.numbers import legs, powers
from tools.gold_solvers.words import synthesized

READINGS = {
    "leg_counting": legs,
    "manipulate_matrix": manipulated,
    "pool_matrix": pooled,
    "power_function": powers,
    "string_synthesis": synthesized,
}
"""Task to a solver that computes the answers of all interpretations of a question."""


def entry_of(task, seed):
    return datasets.make_entry(task, {}, seed, checked=False)


@pytest.mark.slow
@pytest.mark.parametrize("task", READINGS)
def test_the_answer_to_each_interpretation_of_a_question_is_right(task):
    several = 0
    for seed in range(500, 560):
        entry = entry_of(task, seed)
        answers = READINGS[task](entry["question"])
        several += len(answers) > 1
        assert {run_score(task, entry, answer) for answer in answers} == {1.0}
    assert several >= 6


def test_a_legal_solution_of_tower_of_hanoi_may_be_long():
    entry = entry_of("tower_of_hanoi", 77100003)
    first, *rest = entry["answer"].split("\n")
    assert first == "Move disk 1 from Peg 2 to Peg 1"
    detour = ["Move disk 1 from Peg 2 to Peg 3", "Move disk 1 from Peg 3 to Peg 1"]
    values = [
        run_score("tower_of_hanoi", entry, "\n".join(moves))
        for moves in ([*detour, *rest], [*detour, *rest[:-1]], [detour[1], *rest])
    ]
    assert values == [1.0, 0.05, 0.0]
