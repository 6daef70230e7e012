"""Every filling of a matrix of survo is right, and nothing else."""

import pytest

from rg_env.task_rules.games.survo import score_filled_matrix

ENTRY = {
    "metadata": {
        "puzzle": [[0, 0, 5], [0, 0, 5], [5, 5, 10]],
        "candidate_numbers": [2, 3, 3, 2],
    }
}
GOLD = "2 3 5\n3 2 5\n5 5 10"


def score(answer):
    return score_filled_matrix(answer, ENTRY, lambda text: float(text == GOLD))


@pytest.mark.parametrize("answer", [GOLD, "3 2 5\n2 3 5\n5 5 10"])
def test_each_filling_is_paid_in_full(answer):
    assert score(answer) == 1.0


@pytest.mark.parametrize(
    "answer",
    [
        "1 4 5\n4 1 5\n5 5 10",  # other numbers than those given
        "3 2 5\n3 2 5\n5 5 10",  # the columns' sums are wrong
        "3 2 5\n2 3 5\n5 5 11",  # a given number is another one
        "3 2 5\n2 3 5",
        "3 2 5\n2 3 5\n5 5 10\n0 0 0",
        "3 2 5 1\n2 3 5\n5 5 10",
        "3 2 5\n2 3 5\n5 5 10 or 7.5",
        "3 2 5\n2 3 5\n5 5 " + "9" * 5_000,
        "",
    ],
)
def test_nothing_else_is_paid(answer):
    assert score(answer) == 0.0
