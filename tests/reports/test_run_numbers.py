"""The numbers of a run for W&B."""

from rg_env.reports.metrics import Metrics, run_numbers
from rg_env.rollouts.ledger import Ledger
from rg_env.tasks.feedback import Feedback


def numbers(correct=(), scores=()):
    return run_numbers(Metrics(Ledger()), Feedback(0.7), correct, scores, {})


def test_the_share_of_correct_rollouts_stands_beside_the_mean_score():
    logged = numbers(correct=[1.0, 0.0, 1.0, 0.0], scores=[0.5, 0.4, 1.0, 0.1])
    assert logged["train/percent_correct"] == 0.5
    assert logged["train/mean_score"] == 0.5 * (0.5 + 0.4 + 1.0 + 0.1) / 2


def test_without_a_rollout_there_is_neither():
    assert not {"train/percent_correct", "train/mean_score"} & set(numbers())
