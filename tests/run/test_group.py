"""Groups: a dumped one explains itself, each rollout ends once, rewards are shaped."""

import json

import pytest

from rg_env.run.group import SCHEMA_VERSION, Ending, Ledger, Rollout
from tests.support.groups import scored

# -- a line of a dump ------------------------------------------------------------------

TALK = [{"role": "user", "content": "2 + 3?"}, {"role": "assistant", "content": "5"}]
ORIGIN = {"index": 17, "seed": 99, "level": 0.7, "params": {"max_numbers": 3}}


def group(*scores, **origin):
    rollouts = [Rollout(TALK, n, n / 2) for n in scores]
    return scored("gcd", rollouts, "5", **origin)


def line(found):
    return found.line({"reasoning_gym": "0.1.25"}, "2026-01-31T12:00:00+00:00")


def test_a_line_has_every_field_in_one_order():
    written = line(group(1.0, 0.0, **ORIGIN))
    rollouts = written["rollouts"]
    assert [(r["score"], r["reward"]) for r in rollouts] == [(1.0, 0.5), (0.0, 0.0)]
    assert rollouts[0]["conversation"] == TALK
    assert list(written.items()) == [
        ("schema_version", SCHEMA_VERSION),
        ("item_id", "gcd"),
        ("rollouts", rollouts),
        ("task", "gcd"),
        ("split", "train"),
        ("index", 17),
        ("seed", 99),
        ("level", 0.7),
        ("params", {"max_numbers": 3}),
        ("gold_answer", "5"),
        ("versions", {"reasoning_gym": "0.1.25"}),
        ("time", "2026-01-31T12:00:00+00:00"),
    ]
    assert json.loads(json.dumps(written)) == written


# -- the ledger ------------------------------------------------------------------------


def test_a_continued_ledger_has_its_endings_and_no_rollouts_in_flight():
    ledger = Ledger()
    again = Ledger()
    for before in (ledger, again):
        before.query(8)
        before.settle(Ending.SENT, 5)
    again.load_state_dict(json.loads(json.dumps(ledger.state_dict())))
    assert (again.queried, again.endings, again.in_flight) == (5, {"sent": 5}, 0)


@pytest.mark.parametrize(
    "state", [[], {"queried": None, "outcomes": {}}, {"queried": 1, "outcomes": [""]}]
)
def test_a_broken_ledger_is_refused_and_changes_nothing(state):
    ledger = Ledger()
    with pytest.raises(ValueError, match=r"Expected|missing"):
        ledger.load_state_dict(state)
    assert (ledger.queried, ledger.endings) == (0, {})
