"""When a server is left out, probed and taken back, on a clock that the test moves."""

from datetime import datetime, timezone

import pytest

from rg_env import patience
from rg_env.inference.circuit import Circuit, retry_after_s
from rg_env.patience import BUSY_REST_S as DEFAULT_REST_S
from rg_env.patience import CIRCUIT_FAILURES_IN_A_ROW as FAILURES_IN_A_ROW
from rg_env.patience import CIRCUIT_FIRST_PAUSE_S as FIRST_PAUSE_S

NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)


class Timed(Circuit):
    """A circuit whose time and chance are the test's, and that counts its changes."""

    def __init__(self, chance=0.5):
        self.now, self.changes = 0.0, []
        super().__init__(lambda: self.now, lambda: chance)
        self.on_change = lambda: self.changes.append(self.is_open)

    def fail(self, times=FAILURES_IN_A_ROW):
        for i in range(times):
            self.note_failure(f"failure {i}")

    def pause_s(self):
        """Return how long it is until a probe is due, to a hundredth; take it."""
        began = self.now
        while not self.begin_probe():
            self.now += 0.01
        return self.now - began


def test_it_opens_after_a_few_failures_in_a_row_and_not_before():
    circuit = Timed()
    circuit.fail(FAILURES_IN_A_ROW - 1)
    assert circuit.admits and circuit.changes == []
    circuit.fail(1)
    assert not circuit.admits and circuit.changes == [True]


def test_an_answer_in_between_begins_the_count_anew():
    circuit = Timed()
    for _ in range(10):
        circuit.fail(FAILURES_IN_A_ROW - 1)
        circuit.note_answer()
    assert circuit.admits and circuit.changes == []


def test_late_failures_and_answers_change_an_open_one_once():
    circuit = Timed()
    circuit.fail(50)
    assert circuit.changes == [True]
    circuit.note_answer()
    circuit.note_answer()
    assert circuit.changes == [True, False]


def test_one_probe_at_a_time_after_the_pause():
    circuit = Timed()
    assert not circuit.begin_probe()
    circuit.fail()
    assert not circuit.begin_probe()
    circuit.now = FIRST_PAUSE_S
    assert circuit.begin_probe() and not circuit.begin_probe()
    circuit.end_probe(passed=True)
    assert circuit.admits and circuit.changes == [True, False]


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


def test_as_many_failures_after_a_passed_probe_open_it_again_for_longer():
    circuit = Timed()
    circuit.fail()
    first = circuit.pause_s()
    circuit.end_probe(passed=True)
    circuit.fail(FAILURES_IN_A_ROW - 1)
    assert circuit.admits
    circuit.fail(1)
    assert circuit.pause_s() == pytest.approx(2 * first, abs=0.03)


def test_an_answer_after_a_passed_probe_forgets_all():
    circuit = Timed()
    circuit.fail()
    circuit.pause_s()
    circuit.end_probe(passed=True)
    circuit.note_answer()
    circuit.fail(FAILURES_IN_A_ROW - 1)
    assert circuit.admits
    circuit.fail(1)
    assert circuit.pause_s() == pytest.approx(FIRST_PAUSE_S, abs=0.03)


LONGEST_REST_S = patience.BUSY_LONGEST_REST_S


@pytest.mark.parametrize(
    ("asked_s", "kept_s"),
    [(5.0, 5.0), (1e9, LONGEST_REST_S), (float("inf"), LONGEST_REST_S)],
)
def test_a_rest_is_kept_within_bounds_and_is_no_opening(asked_s, kept_s):
    circuit = Timed()
    circuit.rest(-3.0, "429")  # over already, so none
    assert circuit.admits
    circuit.rest(asked_s, "429")
    circuit.rest(0.0, "429")
    circuit.now = kept_s - 0.01
    assert not circuit.admits
    circuit.now = kept_s
    assert circuit.admits and circuit.changes == []


def test_a_server_that_rests_is_not_tried():
    circuit = Timed()
    circuit.fail()
    circuit.rest(30.0, "429")
    circuit.now = 29.0
    assert not circuit.begin_probe()
    circuit.now = 30.0
    assert circuit.begin_probe()


def test_how_long_it_was_open_is_known_when_it_closes():
    circuit = Timed()
    circuit.fail()
    circuit.now = 7.0
    circuit.on_change = lambda: circuit.changes.append(circuit.open_s)
    circuit.note_answer()
    assert circuit.changes == [True, 7.0]


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("12", 12.0),
        (" 3 ", 3.0),
        ("9" * 400, float("inf")),
        ("Thu, 01 Jan 2026 00:00:20 GMT", 20.0),
        ("Thu, 01 Jan 2026 00:00:20 -0000", 20.0),
        ("Wed, 31 Dec 2025 23:59:50 GMT", -10.0),
        (None, DEFAULT_REST_S),
        ("", DEFAULT_REST_S),
        ("soon", DEFAULT_REST_S),
        ("-5", DEFAULT_REST_S),
        ("1.5e", DEFAULT_REST_S),
    ],
)
def test_a_retry_after_is_read_as_seconds_or_a_date(header, seconds):
    assert retry_after_s(header, NOW) == seconds
