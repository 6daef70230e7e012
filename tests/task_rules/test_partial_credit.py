"""What is left of a share in a wrong answer."""

import pytest

from rg_env.task_rules.partial_credit import partial_credit


@pytest.mark.parametrize(
    ("share", "without_solving", "score"),
    [
        *((1.0, 0.0, 0.5), (0.5, 0.0, 0.25), (0.0, 0.0, 0.0)),
        *((0.5, 0.5, 0.0), (0.75, 0.5, 0.25), (0.25, 0.5, 0.0), (1.0, 0.5, 0.5)),
        *((1.0, 1.0, 0.0), (1.5, 0.5, 0.5)),
    ],
)
def test_a_wrong_answer_is_paid_by_what_is_right_beyond_guessing(
    share, without_solving, score
):
    assert partial_credit(share, without_solving) == score
