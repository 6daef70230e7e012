"""How many groups may be in flight: arithmetic over the API's status."""

import dataclasses

import pytest

from rg_env.atropos.flight_limits import (
    FlightLimits,
    groups_to_start,
    groups_to_the_end,
)

LIMITS = FlightLimits(
    max_workers=8,
    group_size=8,
    batch_size=64,
    own_batch_size=64,
    max_batches_offpolicy=3,
    min_batch_allocation=None,
)


def status(queue=0, own=0, step=0, pack=8):
    return {
        "queue_size": queue,
        "self_queue_size": own,
        "max_group_size": pack,
        "current_step": step,
    }


def started(queue=0, querying=0, in_flight=0, own=0, **limits):
    changed = dataclasses.replace(LIMITS, **limits)
    return groups_to_start(changed, status(queue, own), querying, in_flight, 10**6)


@pytest.mark.parametrize(("queue", "allowed"), [(0, 8), (17, 7), (23, 1), (24, 0)])
def test_groups_in_flight_and_in_the_queue_stay_within_the_offpolicy_bound(
    queue, allowed
):
    assert started(queue) == allowed


def test_a_bound_of_0_batches_is_no_bound():
    assert started(10**6, max_batches_offpolicy=0) == 8


def test_a_group_that_has_its_replies_leaves_its_place_to_another():
    assert started(querying=8, in_flight=8) == 0
    assert started(querying=5, in_flight=8) == 3


def test_groups_being_scored_and_sent_are_bounded_as_well():
    assert started(querying=0, in_flight=15) == 1
    assert started(querying=0, in_flight=16) == 0


def test_an_instance_with_a_minimum_goes_on_while_others_fill_the_queue():
    assert started(100, own=0, min_batch_allocation=0.25) > 0
    assert started(100, own=100, min_batch_allocation=0.25) == 0


@pytest.mark.parametrize(
    ("queue", "in_flight", "allowed"), [(0, 0, 8), (3, 0, 5), (3, 4, 1), (3, 5, 0)]
)
@pytest.mark.parametrize("minimum", [None, 1.0])
def test_no_more_groups_are_started_than_the_run_needs(
    queue, in_flight, allowed, minimum
):
    limits = dataclasses.replace(LIMITS, min_batch_allocation=minimum)
    last = status(queue, step=10)
    assert groups_to_start(limits, last, in_flight, in_flight, 10) == allowed


@pytest.mark.parametrize(
    ("step", "queue", "ends"),
    [(0, 0, False), (10, 0, False), (11, 0, True), (9, 8, False), (9, 16, True)],
)
def test_the_run_is_complete_when_batches_made_and_queued_pass_its_last_step(
    step, queue, ends
):
    assert (groups_to_the_end(LIMITS, status(queue, step=step), 10) <= 0) is ends
