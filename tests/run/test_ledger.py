"""The ledger counts every rollout, also across a restart."""

import json

import pytest

from rg_env.run.ledger import Ending, Ledger


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
