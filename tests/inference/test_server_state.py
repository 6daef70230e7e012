"""A server is left out after failures in a row, rests where it is busy, and returns."""

import pytest

from rg_env import patience
from rg_env.inference.request_failures import refusal
from rg_env.inference.server_state import ServerState
from rg_env.patience import CIRCUIT_FAILURES_IN_A_ROW as FAILURES_IN_A_ROW
from rg_env.patience import CIRCUIT_FIRST_PAUSE_S as FIRST_PAUSE_S


class Timed(ServerState):
    """A state whose time a test sets; it keeps its changes, and how long it was out."""

    def __init__(self):
        self.now, self.changes = 0.0, []
        self.clock = lambda: self.now
        super().__init__()
        self.on_change = lambda: self.changes.append((self.is_out, self.out_s))

    def fail(self, *statuses, wait=None):
        headers = {} if wait is None else {"Retry-After": wait}
        for status in statuses:
            self.note_failure(refusal(status, "", headers))


GONE = [500] * FAILURES_IN_A_ROW


def test_it_is_left_out_after_failures_in_a_row_without_an_answer_in_between():
    state = Timed()
    for _ in range(10):
        state.fail(*GONE[1:])
        state.note_answer()
    assert state.admits and state.changes == []
    state.fail(*GONE, 502)
    state.now = 7.0
    state.note_answer()
    assert state.changes == [(True, 0.0), (False, 7.0)] and state.admits


def test_pauses_double_up_to_a_bound_until_an_answer():
    state = Timed()
    state.fail(*GONE)
    for i in range(9):
        pause_s = min(FIRST_PAUSE_S * 2**i, patience.CIRCUIT_LONGEST_PAUSE_S)
        assert state.next_pause_s() == pytest.approx(pause_s, rel=0.25)
    state.take_back()  # by a probe, which is no answer
    longest_s = patience.CIRCUIT_LONGEST_PAUSE_S
    assert state.next_pause_s() == pytest.approx(longest_s, rel=0.25)
    state.note_answer()
    assert state.next_pause_s() == pytest.approx(FIRST_PAUSE_S, rel=0.25)


@pytest.mark.parametrize(
    ("wait", "kept_s"),
    [("5", 5.0), ("9" * 400, patience.BUSY_LONGEST_REST_S)],
)
def test_a_busy_server_rests_as_long_as_it_says_within_bounds(wait, kept_s):
    state = Timed()
    for each in ("Thu, 01 Jan 2026 00:00:20 GMT", "-3", wait, "0"):
        state.fail(429, wait=each)
    state.now = kept_s - 0.01
    assert state.is_resting and not state.admits and state.next_pause_s() > 0
    state.now = kept_s
    assert state.admits and state.changes == []


@pytest.mark.parametrize(
    ("status", "wait", "is_out", "rests"),
    [
        (429, None, False, True),
        (503, None, True, False),
        (503, "7", False, True),
        (500, "7", True, False),
        *((status, None, False, False) for status in (400, 413, 422)),
    ],
)
def test_busy_servers_and_bad_requests_leave_no_server_out(status, wait, is_out, rests):
    state = Timed()
    state.fail(*[status] * 50, wait=wait)
    assert (state.is_out, state.is_resting) == (is_out, rests)
    assert str(status) in state.failure.text
