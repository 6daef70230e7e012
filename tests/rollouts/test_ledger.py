"""The ledger: every rollout that was queried has one outcome or is in flight."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rg_env.rollouts.ledger import Ending, Ledger

OUTCOMES = st.sampled_from(Ending)


@given(st.lists(st.tuples(st.integers(1, 64), st.none() | OUTCOMES)))
def test_what_was_queried_is_the_sum_of_the_outcomes_and_of_those_in_flight(groups):
    ledger = Ledger()
    for rollouts, outcome in groups:
        ledger.query(rollouts)
        if outcome is not None:
            ledger.settle(outcome, rollouts)
    in_flight = sum(rollouts for rollouts, outcome in groups if outcome is None)
    assert ledger.in_flight == in_flight
    assert ledger.queried == sum(ledger.outcomes.values()) + in_flight


def test_rollouts_in_flight_are_not_counted_in_a_saved_ledger():
    ledger = Ledger()
    ledger.query(24)
    ledger.settle(Ending.SENT, 16)
    assert ledger.state_dict() == {"queried": 16, "outcomes": {"sent": 16}}


def test_a_saved_ledger_survives_json_and_continues():
    first, second = Ledger(), Ledger()
    first.query(24)
    first.settle(Ending.SENT, 16)
    first.settle(Ending.ZERO_VARIANCE, 8)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    second.query(8)
    assert (second.queried, second.in_flight) == (32, 8)
    assert second.outcomes == first.outcomes


def test_the_number_of_an_old_word_goes_on_under_the_new_one():
    ledger = Ledger()
    kept = {"sent": 4, "refused_by_api": 2, "discarded": 1}
    ledger.load_state_dict({"queried": 7, "outcomes": kept})
    assert ledger.outcomes == {"sent": 4, "discarded": 3}


@pytest.mark.parametrize(
    "state",
    [
        {},
        [],
        None,
        {"queried": 1},
        {"queried": None, "outcomes": {}},
        {"queried": 1, "outcomes": ["sent"]},
        {"queried": 1, "outcomes": {"sent": None}},
    ],
)
def test_a_broken_ledger_is_refused_and_changes_nothing(state):
    ledger = Ledger()
    with pytest.raises(ValueError, match="the ledger needs"):
        ledger.load_state_dict(state)
    assert (ledger.queried, ledger.outcomes) == (0, {})


def test_every_change_is_told_as_it_is_then():
    told = []
    ledger = Ledger(told.append)
    ledger.query(4)
    ledger.settle(Ending.SENT, 4)
    ledger.settle(Ending.FAILED, 0)
    assert told == [
        {"queried": 4, "outcomes": {}},
        {"queried": 4, "outcomes": {"sent": 4}},
    ]
