"""The ledger: every rollout that was asked for has one fate or is in flight."""

import json
import logging
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rg_env.answers.extraction import FormatFailure
from rg_env.reports import progress_bar
from rg_env.reports.metrics import FORMAT_FAILURES, Fate, Metrics
from rg_env.reports.progress_bar import WorkProgress
from rg_env.rollouts.group_record import GroupRecord, RolloutRecord

FATES = st.sampled_from(get_args(Fate))


def group(task, **scores_by_outcome):
    rollouts = [
        RolloutRecord([], score, score, outcome, None, "stop", 10, 5)
        for outcome, score in scores_by_outcome.items()
    ]
    return GroupRecord(task, rollouts, "5", {})


# -- fates -----------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(1, 64), st.none() | FATES)))
def test_what_was_asked_is_the_sum_of_the_fates_and_of_those_in_flight(groups):
    metrics = Metrics()
    for rollouts, fate in groups:
        metrics.asked += rollouts
        if fate is not None:
            metrics.record_fate(fate, rollouts)
    in_flight = sum(rollouts for rollouts, fate in groups if fate is None)
    assert metrics.in_flight == in_flight
    assert metrics.asked == sum(metrics.fates.values()) + in_flight


def test_rollouts_in_flight_are_not_asked_for_in_a_saved_ledger():
    metrics = Metrics()
    metrics.asked = 24
    metrics.record_fate("sent", 16)
    assert metrics.state_dict() == {"asked": 16, "fates": {"sent": 16}}


def test_a_saved_ledger_survives_json_and_continues():
    first, second = Metrics(), Metrics()
    first.asked = 24
    first.record_fate("sent", 16)
    first.record_fate("no_signal", 8)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    second.asked += 8
    assert (second.asked, second.in_flight) == (32, 8)
    assert second.fates == first.fates


@pytest.mark.parametrize(
    "state",
    [
        {},
        [],
        None,
        {"asked": 1},
        {"asked": None, "fates": {}},
        {"asked": 1, "fates": ["sent"]},
        {"asked": 1, "fates": {"sent": None}},
    ],
)
def test_a_broken_ledger_is_refused_and_changes_nothing(state):
    metrics = Metrics()
    with pytest.raises(ValueError, match="metrics need"):
        metrics.load_state_dict(state)
    assert (metrics.asked, metrics.fates) == (0, {})


# -- scores ----------------------------------------------------------------------------


def test_scores_are_summed_by_task():
    metrics = Metrics()
    metrics.record_group(group("gcd", right=1.0, wrong=0.0))
    metrics.record_group(group("gcd", right=1.0, partial=0.5))
    metrics.record_group(group("lcm", wrong=0.0, no_answer=0.0))
    assert (metrics.tasks["gcd"].groups, metrics.tasks["gcd"].rollouts) == (2, 4)
    assert metrics.tasks["gcd"].mean_score == 0.625
    assert metrics.mean_score == pytest.approx(2.5 / 6)


def test_every_rollout_without_an_answer_is_a_format_failure():
    metrics = Metrics()
    metrics.record_group(group("gcd", wrong=0.0, empty_answer=0.0, stray_tag=0.0))
    assert metrics.tasks["gcd"].format_failures == 1


def test_the_format_failures_are_those_of_extraction():
    assert set(get_args(FormatFailure)) == FORMAT_FAILURES


def test_outcomes_are_counted_by_task_too():
    metrics = Metrics()
    metrics.record_group(group("gcd", right=1.0, wrong=0.0))
    metrics.record_group(group("lcm", right=1.0))
    assert metrics.outcomes == {"right": 2, "wrong": 1}
    assert metrics.task_outcomes["lcm", "right"] == 1


def test_there_are_numbers_before_the_first_rollout():
    metrics = Metrics()
    assert (metrics.mean_score, metrics.in_flight) == (0.0, 0)
    assert metrics.wandb_scalars() == {"ledger/rollouts_asked": 0}
    assert metrics.summary() == (
        "0 rollouts asked (none back yet), mean score 0.000 (none scored yet)"
    )


def test_the_shares_of_the_outcomes_are_since_the_last_call():
    metrics = Metrics()
    metrics.record_group(group("gcd", right=1.0, wrong=0.0))
    assert metrics.wandb_scalars()["outcomes/right"] == 0.5
    metrics.record_group(group("gcd", right=1.0))
    scalars = metrics.wandb_scalars()
    assert scalars["outcomes/right"] == 1.0
    assert "outcomes/wrong" not in scalars
    assert "outcomes/right" not in metrics.wandb_scalars()


def test_the_ledger_and_the_events_are_totals():
    metrics = Metrics()
    metrics.asked = 8
    metrics.record_fate("sent", 8)
    metrics.events["prompts_too_long"] += 1
    expected = {
        "ledger/rollouts_asked": 8,
        "ledger/sent": 8,
        "events/prompts_too_long": 1,
    }
    assert metrics.wandb_scalars() == metrics.wandb_scalars() == expected


def test_the_summary_says_fates_and_outcomes_with_the_commonest_first():
    metrics = Metrics()
    metrics.asked = 4
    metrics.record_fate("no_signal", 1)
    metrics.record_fate("sent", 2)
    metrics.record_group(group("gcd", right=1.0, wrong=0.0))
    metrics.record_group(group("gcd", right=1.0, no_answer=0.0))
    assert metrics.summary() == (
        "4 rollouts asked (2 sent, 1 no_signal), mean score 0.500"
        " (right 50%, wrong 25%, no_answer 25%)"
    )


# -- progress of long work -------------------------------------------------------------


def test_without_a_terminal_the_end_of_the_work_is_one_line(caplog, capsys):
    caplog.set_level(logging.INFO)
    with WorkProgress("evaluation", 3, "items") as work:
        for score in ("0.1", "0.2", "0.3"):
            work.advance(f"score {score}")
    lines = [record.getMessage() for record in caplog.records]
    assert lines == ["evaluation: 3 of 3 items score 0.3"]
    assert capsys.readouterr() == ("", "")


def test_without_a_terminal_long_work_says_how_far_it_is(caplog, monkeypatch):
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(progress_bar, "LINE_EVERY_S", 0.0)
    with WorkProgress("evaluation", 3, "items") as work:
        work.advance()
    assert caplog.records[0].getMessage().startswith("evaluation: 1 of 3 items")


def group_of(task: str, *outcomes: str) -> GroupRecord:
    rollouts = [
        RolloutRecord([], 0.0, 0.0, outcome, None, "stop", 1, 1) for outcome in outcomes
    ]
    return GroupRecord(task, rollouts, None, {})


def test_trouble_of_a_task_is_said_ever_more_seldom() -> None:
    metrics, said = Metrics(), 0
    for _ in range(100):
        group = group_of("gcd", "timeout", "right")
        metrics.record_group(group)
        said += len(metrics.new_warnings(group))
    assert said == 7  # at 1, 2, 4, 8, 16, 32 and 64


def test_the_table_counts_every_outcome_of_every_task() -> None:
    metrics = Metrics()
    metrics.record_group(group_of("gcd", "timeout", "right"))
    metrics.record_group(group_of("lcm", "right", "right"))
    columns, rows = metrics.task_table()
    assert columns == ["task", "groups", "mean score", "right", "timeout"]
    assert rows == [["gcd", 1, 0.0, 1, 1], ["lcm", 1, 0.0, 2, 0]]
