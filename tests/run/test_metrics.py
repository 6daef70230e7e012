"""Outcomes, scores and means, of a run for W&B and the log, and for any trainer."""

import asyncio
import dataclasses

import pytest

from rg_env import GroupLog, Item, Result
from rg_env.reward.score import OUTCOMES
from rg_env.run.group import Rollout
from rg_env.run.ledger import Ending, Ledger
from rg_env.run.metrics import Metrics
from tests.support.groups import scored


def group(level=None, **scores_by_outcome):
    rollouts = [
        Rollout([], score, score, outcome, None, "stop", 10, 5)
        for outcome, score in scores_by_outcome.items()
    ]
    origin = {} if level is None else {"level": level}
    return scored("gcd", rollouts, "5", **origin)


def taken(*groups):
    metrics = Metrics(Ledger())
    take(metrics, *groups)
    return metrics


def take(metrics, *groups):
    for group in groups:
        asyncio.run(metrics.take(group))


def without_alarms(metrics):
    """Return the metrics without the counts of alarms."""
    found = metrics.metrics()
    return {name: n for name, n in found.items() if not name.startswith("alarms/")}


def test_shares_and_means_are_of_all_groups_since_the_last_call():
    both = group(level=0.25, right=1.0, wrong=0.4)
    long = dataclasses.replace(
        both.rollouts[0], completion_tokens=20, finish_reason="length"
    )
    metrics = taken(both, dataclasses.replace(both, rollouts=[long, long]))
    found = without_alarms(metrics)
    assert (found["outcomes/right"], found["outcomes/wrong"]) == (0.75, 0.25)
    assert found["train/percent_correct"] == 0.75
    assert found["train/mean_score"] == pytest.approx(0.85)
    assert found["train/groups_with_variance"] == 0.5
    assert (found["train/level"], found["train/truncated"]) == (0.25, 0.5)
    assert found["train/completion_tokens"] == (5 + 5 + 20 + 20) / 4
    take(metrics, group(right=1.0))
    found = without_alarms(metrics)
    assert (found["train/completion_tokens"], found["train/rollouts_scored"]) == (5, 5)
    assert found["outcomes/right"] == 1.0
    assert not {"train/level", "outcomes/wrong"} & found.keys()


def test_the_ledger_and_the_events_are_totals():
    metrics = taken()
    metrics.ledger.query(8)
    metrics.ledger.settle(Ending.SENT, 8)
    metrics.events["prompts_too_long"] += 1
    expected = {
        "ledger/rollouts_queried": 8,
        "ledger/sent": 8,
        "events/prompts_too_long": 1,
        "train/rollouts_scored": 0,
    }
    assert without_alarms(metrics) == without_alarms(metrics) == expected


def test_the_summary_says_endings_and_outcomes_with_the_commonest_first(logged):
    metrics = taken(group(right=1.0, wrong=0.0), group(right=1.0, no_answer=0.0))
    metrics.ledger.query(4)
    metrics.ledger.settle(Ending.ZERO_VARIANCE, 1)
    metrics.ledger.settle(Ending.SENT, 2)
    asyncio.run(metrics.log_summary())
    assert logged.messages[-1] == (
        "4 rollouts queried (2 sent, 1 zero_variance), mean score 0.500;"
        " of 4 scored: right 50%, wrong 25%, no_answer 25%"
    )


def test_the_first_group_and_every_tenth_are_in_the_log(logged):
    taken(*21 * [group(level=0.425, right=1.0, wrong=0.0)])
    lines = [r.getMessage() for r in logged.records if r.levelname == "INFO"]
    assert [line.split(":")[0] for line in lines] == ["group 1", "group 10", "group 20"]
    assert lines[1] == (
        "group 10: gcd at level 0.42, mean score 0.500 (right 1, wrong 1)"
    )


# -- of any trainer --------------------------------------------------------------------

RIGHT = Result(1.0, "right", "1", parts={"correct": 1.0, "partial": 1.0})
WRONG = Result(0.0, "wrong", "2", parts={"correct": 0.0, "partial": 0.5})
NONE = Result(None, "unscored", None, "no worker")
NO_OUTCOMES = {f"outcomes/{outcome}": 0.0 for outcome in OUTCOMES}


def item(task, level=None):
    return Item(task, level=level, _entry={"answer": "1"})


def test_the_metrics_are_of_what_was_taken_since_the_last_time():
    log = GroupLog()
    log.take(item("gcd", 0.2), [RIGHT, WRONG])
    log.take(item("gcd", 0.4), [RIGHT, NONE])
    log.take(item("lcm"), [NONE])
    assert log.metrics() == NO_OUTCOMES | {
        "outcomes/right": 0.4,
        "outcomes/wrong": 0.2,
        "outcomes/unscored": 0.4,
        "unscored": 0.4,
        "correct": 2 / 3,
        "partial": 2.5 / 3,
        "groups_with_variance": 0.5,
        "score/gcd": 0.75,
        "level/gcd": 0.30000000000000004,
    }
    log.take(item("lcm"), [WRONG, WRONG])
    assert log.metrics() == NO_OUTCOMES | {
        "outcomes/wrong": 1.0,
        "unscored": 0.0,
        "correct": 0.0,
        "partial": 0.5,
        "groups_with_variance": 0.0,
        "score/lcm": 0.0,
    }


def test_an_item_that_the_installed_library_makes_otherwise_counts_as_unscored():
    log = GroupLog()
    log.take(Item("gcd", {}, seed=1, digest="of another version"), [NONE])
    assert log.metrics()["unscored"] == 1.0


def test_an_alarm_is_called_and_counted():
    lines = []
    log = GroupLog(lines.append)
    for _ in range(32):
        log.take(item("gcd"), [WRONG, WRONG], truncated=2)
    assert {line.split(":")[0] for line in lines} == {
        "alarm no_variance",
        "alarm truncations",
    }
    assert log.metrics()["alarms/no_variance"] == 1


def test_torchrun_warns_in_one_process(monkeypatch, caplog):
    for rank in "01":
        monkeypatch.setenv("RANK", rank)
        log = GroupLog()
        for _ in range(32):
            log.take(item("gcd"), [WRONG, WRONG])
    assert caplog.text.count("alarm no_variance") == 1
