"""What happened to the rollouts: outcomes, scores, the numbers for W&B and the log."""

import dataclasses

import pytest

from rg_env.reports.metrics import Metrics, run_numbers
from rg_env.rollouts.group import Ending, Ledger, Rollout
from rg_env.tasks.feedback import Feedback
from tests.support.groups import scored


def group(task, level=None, **scores_by_outcome):
    rollouts = [
        Rollout([], score, score, outcome, None, "stop", 10, 5)
        for outcome, score in scores_by_outcome.items()
    ]
    origin = {} if level is None else {"level": level}
    return scored(task, rollouts, "5", **origin)


# -- scores ----------------------------------------------------------------------------


def test_there_are_numbers_before_the_first_rollout():
    metrics = Metrics(Ledger())
    assert (metrics.mean_score, metrics.ledger.in_flight) == (0.0, 0)
    numbers = {"ledger/rollouts_queried": 0, "train/rollouts_scored": 0}
    assert metrics.wandb_scalars() == numbers
    assert metrics.summary() == "0 rollouts queried (none back yet), none scored yet"


def test_the_shares_of_the_outcomes_are_since_the_last_call():
    metrics = Metrics(Ledger())
    metrics.record_group(group("gcd", right=1.0, wrong=0.0))
    assert metrics.wandb_scalars()["outcomes/right"] == 0.5
    metrics.record_group(group("gcd", right=1.0))
    scalars = metrics.wandb_scalars()
    assert scalars["outcomes/right"] == 1.0
    assert "outcomes/wrong" not in scalars
    assert "outcomes/right" not in metrics.wandb_scalars()


def test_variance_level_length_and_truncation_are_of_all_groups_since_the_last_call():
    metrics = Metrics(Ledger())
    both = group("gcd", level=0.25, right=1.0, wrong=0.0)
    long = dataclasses.replace(
        both.rollouts[0], completion_tokens=20, finish_reason="length"
    )
    metrics.record_group(both)
    metrics.record_group(dataclasses.replace(both, rollouts=[long, long]))
    found = metrics.wandb_scalars()
    assert found["train/groups_with_variance"] == 0.5
    assert (found["train/level"], found["train/truncated"]) == (0.25, 0.5)
    assert found["train/completion_tokens"] == (5 + 5 + 20 + 20) / 4
    assert found["train/rollouts_scored"] == 4
    metrics.record_group(group("gcd", right=1.0))
    found = metrics.wandb_scalars()
    assert (found["train/completion_tokens"], found["train/rollouts_scored"]) == (5, 5)
    assert "train/level" not in found


def test_the_ledger_and_the_events_are_totals():
    metrics = Metrics(Ledger())
    metrics.ledger.query(8)
    metrics.ledger.settle(Ending.SENT, 8)
    metrics.events["prompts_too_long"] += 1
    expected = {
        "ledger/rollouts_queried": 8,
        "ledger/sent": 8,
        "events/prompts_too_long": 1,
        "train/rollouts_scored": 0,
    }
    assert metrics.wandb_scalars() == metrics.wandb_scalars() == expected


def test_the_summary_says_endings_and_outcomes_with_the_commonest_first():
    metrics = Metrics(Ledger())
    metrics.ledger.query(4)
    metrics.ledger.settle(Ending.ZERO_VARIANCE, 1)
    metrics.ledger.settle(Ending.SENT, 2)
    metrics.record_group(group("gcd", right=1.0, wrong=0.0))
    metrics.record_group(group("gcd", right=1.0, no_answer=0.0))
    assert metrics.summary() == (
        "4 rollouts queried (2 sent, 1 zero_variance), mean score 0.500;"
        " of 4 scored: right 50%, wrong 25%, no_answer 25%"
    )


def test_a_group_is_one_line_with_task_level_and_scores():
    metrics = Metrics(Ledger())
    metrics.record_group(group("lcm", right=1.0))
    newest = group("gcd", level=0.425, right=1.0, wrong=0.0)
    metrics.record_group(newest)
    assert metrics.group_line(newest) == (
        "group 2: gcd at level 0.42, mean score 0.500 (right 1, wrong 1)"
    )


def test_trouble_of_a_task_is_said_ever_more_seldom():
    metrics, said = Metrics(Ledger()), 0
    for _ in range(100):
        warnings = metrics.record_group(group("gcd", timeout=0.0, wrong=0.5))
        said += any("outcome timeout" in warning for warning in warnings)
    assert said == 7  # at 1, 2, 4, 8, 16, 32 and 64


def test_the_table_has_the_mean_and_every_outcome_of_every_task():
    metrics = Metrics(Ledger())
    metrics.record_group(group("gcd", timeout=0.0, right=1.0))
    metrics.record_group(group("gcd", right=1.0, timeout=0.5))
    metrics.record_group(group("lcm", right=0.0))
    columns, rows = metrics.task_table()
    assert columns == ["task", "groups", "mean score", "right", "timeout"]
    assert rows == [["gcd", 2, 0.625, 2, 2], ["lcm", 1, 0.0, 1, 0]]
    assert (metrics.groups, metrics.mean_score) == (3, 0.5)


# -- the numbers of a run --------------------------------------------------------------


def test_the_share_of_correct_rollouts_stands_beside_the_mean_score():
    metrics = Metrics(Ledger())
    scores = {"partial": 0.5, "wrong": 0.4, "right": 1.0, "no_answer": 0.3}
    metrics.record_group(group("gcd", **scores))
    logged = run_numbers(metrics, Feedback(0.7), {"errors": 2})
    assert logged["train/percent_correct"] == 0.5
    assert logged["train/mean_score"] == pytest.approx(0.55)
    assert logged["events/errors"] == 2
