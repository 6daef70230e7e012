"""What a trainer logs of its groups."""

from rg_env import GroupLog, Item, Result
from rg_env.reward.score import OUTCOMES

RIGHT, WRONG = Result(1.0, "right", "1"), Result(0.0, "wrong", "2")
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
        "groups_with_variance": 0.5,
        "score/gcd": 0.75,
        "level/gcd": 0.30000000000000004,
    }
    log.take(item("lcm"), [WRONG, WRONG])
    assert log.metrics() == NO_OUTCOMES | {
        "outcomes/wrong": 1.0,
        "unscored": 0.0,
        "groups_with_variance": 0.0,
        "score/lcm": 0.0,
    }


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
