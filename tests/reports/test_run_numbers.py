"""The numbers of a run for W&B."""

import pytest

from rg_env.reports.metrics import Metrics, run_numbers
from rg_env.rollouts.group_record import GroupRecord, RolloutRecord
from rg_env.rollouts.ledger import Ledger
from rg_env.tasks.feedback import Feedback


def numbers(*scores):
    metrics = Metrics(Ledger())
    rollouts = [RolloutRecord([], s, s, "partial", None, "stop", 1, 1) for s in scores]
    if rollouts:
        metrics.record_group(GroupRecord("gcd", rollouts, "5", None))
    return run_numbers(metrics, Feedback(0.7), {"errors": 2})


def test_the_share_of_correct_rollouts_stands_beside_the_mean_score():
    logged = numbers(0.5, 0.4, 1.0, 0.3)
    assert logged["train/percent_correct"] == 0.5
    assert logged["train/mean_score"] == pytest.approx(0.55)
    assert logged["events/errors"] == 2


def test_without_a_rollout_there_is_neither():
    assert not {"train/percent_correct", "train/mean_score"} & set(numbers())
