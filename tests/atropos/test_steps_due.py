"""What is due when the trainer's step has changed."""

import pytest

from rg_env.atropos.steps_due import StepsDue, passed, steps_due


@pytest.mark.parametrize(
    ("interval", "before", "now", "expected"),
    [
        (1, 0, 1, True),
        (2, 1, 3, True),
        (2, 2, 3, False),
        (25, 24, 26, True),
        (25, 25, 49, False),
        (0, 0, 9, False),
        (-1, 0, 9, False),
    ],
)
def test_no_step_that_asks_for_something_is_missed(interval, before, now, expected):
    assert passed(interval, before, now) is expected


def test_a_checkpoint_is_due_for_the_last_multiple_that_was_passed():
    due = steps_due(3, 11, evaluate_every=0, save_every=4)
    assert due == StepsDue(evaluation=False, checkpoint=8)


def test_an_evaluation_is_due_apart_from_checkpoints():
    due = steps_due(24, 25, evaluate_every=25, save_every=-1)
    assert due == StepsDue(evaluation=True, checkpoint=None)
