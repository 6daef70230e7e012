"""When a server is left out, probed and taken back, on a clock that the test moves."""

import pytest

from rg_env import patience
from rg_env.inference.request_failures import NOTHING, Failure, refusal
from rg_env.inference.server_state import ServerState
from rg_env.patience import CIRCUIT_FAILURES_IN_A_ROW as FAILURES_IN_A_ROW
from rg_env.patience import CIRCUIT_FIRST_PAUSE_S as FIRST_PAUSE_S

GONE = Failure("gone", "gone", NOTHING)


class Timed(ServerState):
    """A state whose time and chance are the test's, and that counts its changes."""

    def __init__(self, chance=0.5):
        self.now, self.changes = 0.0, []
        super().__init__(lambda: self.now, lambda: chance)
        self.on_change = lambda: self.changes.append(self.is_out)

    def fail(self, times=FAILURES_IN_A_ROW):
        for _ in range(times):
            self.note_failure(GONE)

    def pause_s(self):
        """Return how long it is until a probe is due, to a hundredth; take it."""
        began = self.now
        while not self.begin_probe():
            self.now += 0.01
        return self.now - began


def test_it_is_left_out_after_a_few_failures_in_a_row_and_not_before():
    state = Timed()
    state.fail(FAILURES_IN_A_ROW - 1)
    assert state.admits and state.changes == []
    state.fail(1)
    assert not state.admits and state.changes == [True]


def test_an_answer_in_between_begins_the_count_anew():
    state = Timed()
    for _ in range(10):
        state.fail(FAILURES_IN_A_ROW - 1)
        state.note_answer()
    assert state.admits and state.changes == []


def test_late_failures_and_answers_change_one_that_is_out_once():
    state = Timed()
    state.fail(50)
    assert state.changes == [True]
    state.note_answer()
    state.note_answer()
    assert state.changes == [True, False]


def test_one_probe_at_a_time_after_the_pause():
    state = Timed()
    assert not state.begin_probe()
    state.fail()
    assert not state.begin_probe()
    state.now = FIRST_PAUSE_S
    assert state.begin_probe() and not state.begin_probe()
    state.end_probe(passed=True)
    assert state.admits and state.changes == [True, False]


def test_pauses_double_up_to_a_bound_and_have_jitter():
    def pauses(chance):
        timed = Timed(chance)
        timed.fail()
        found = []
        for _ in range(9):
            found.append(timed.pause_s())
            timed.end_probe(passed=False)
        return found

    want = [
        min(FIRST_PAUSE_S * 2**i, patience.CIRCUIT_LONGEST_PAUSE_S) for i in range(9)
    ]
    for chance, factor in [(0.0, 0.75), (0.5, 1.0), (1.0, 1.25)]:
        assert pauses(chance) == pytest.approx([factor * s for s in want], abs=0.03)


def test_as_many_failures_after_a_passed_probe_leave_it_out_for_longer():
    state = Timed()
    state.fail()
    first = state.pause_s()
    state.end_probe(passed=True)
    state.fail(FAILURES_IN_A_ROW - 1)
    assert state.admits
    state.fail(1)
    assert state.pause_s() == pytest.approx(2 * first, abs=0.03)


def test_an_answer_after_a_passed_probe_forgets_all():
    state = Timed()
    state.fail()
    state.pause_s()
    state.end_probe(passed=True)
    state.note_answer()
    state.fail(FAILURES_IN_A_ROW - 1)
    assert state.admits
    state.fail(1)
    assert state.pause_s() == pytest.approx(FIRST_PAUSE_S, abs=0.03)


def busy(status, wait):
    return refusal(status, "", {} if wait is None else {"Retry-After": wait})


LONGEST_REST_S = patience.BUSY_LONGEST_REST_S


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("wait", "kept_s"), [("5", 5.0), ("9" * 9, LONGEST_REST_S), ("9" * 400, 60.0)]
)
def test_a_busy_server_rests_as_long_as_it_says_within_bounds(status, wait, kept_s):
    state = Timed()
    state.note_failure(busy(status, "-3"))
    state.note_failure(busy(status, wait))
    state.note_failure(busy(status, "0"))
    state.now = kept_s - 0.01
    assert not state.admits and state.is_resting
    state.now = kept_s
    assert state.admits and not state.is_resting and state.changes == []


@pytest.mark.parametrize(
    ("status", "wait", "is_busy"),
    [
        (429, None, True),
        (429, "7", True),
        (503, "7", True),
        (503, None, False),
        (500, "7", False),
        (502, None, False),
    ],
)
def test_a_server_that_is_busy_is_never_left_out_and_one_that_fails_is(
    status, wait, is_busy
):
    state = Timed()
    for _ in range(FAILURES_IN_A_ROW):
        state.note_failure(busy(status, wait))
    assert (state.is_resting, state.is_out) == (is_busy, not is_busy)


@pytest.mark.parametrize("status", [400, 413, 422])
def test_what_is_about_the_request_says_nothing_of_the_server(status):
    state = Timed()
    for _ in range(50):
        state.note_failure(refusal(status, "computer says no"))
    assert state.admits and state.failure.said == f"{status} computer says no"


def test_a_server_that_rests_is_not_tried():
    state = Timed()
    state.fail()
    state.note_failure(busy(429, "30"))
    state.now = 29.0
    assert not state.begin_probe()
    state.now = 30.0
    assert state.begin_probe()


def test_an_awaited_server_is_probed_at_once_and_left_out_where_that_fails():
    state = Timed()
    state.is_awaited = True
    assert state.admits and state.begin_probe()
    state.note_failure(GONE)
    state.end_probe(passed=False)
    assert state.changes == [True] and state.failure == GONE
    assert state.pause_s() == pytest.approx(FIRST_PAUSE_S, abs=0.03)
    state.end_probe(passed=True)
    assert state.admits and not state.begin_probe() and not state.has_answered


def test_an_awaited_server_that_is_busy_is_there():
    state = Timed()
    state.is_awaited = True
    assert state.begin_probe()
    state.note_failure(busy(429, "30"))
    state.end_probe(passed=False)
    assert not state.is_out
    state.now = 30.0
    assert state.begin_probe()


def test_how_long_it_was_left_out_is_known_when_it_is_back():
    state = Timed()
    state.fail()
    state.now = 7.0
    state.on_change = lambda: state.changes.append(state.out_s)
    state.note_answer()
    assert state.changes == [True, 7.0]
