"""What a worker says is believed only as the answer of the call that was asked."""

import pickle
from fractions import Fraction

import pytest
from worker_attacks import LONG_S, evaluate, execute

from rg_env.answers.scoring import Score, read_rows
from rg_env.items.group_scorer import MAX_REPLY_BYTES, scores_of
from rg_env.pool import wire
from rg_env.pool.pool_errors import JobFailed, WorkerDied
from rg_env.pool.worker_thread import Trust

CHANNEL = (
    "import gc\n"
    "from rg_env.pool.wire import Channel, Frame, pack_result\n"
    "(channel,) = (o for o in gc.get_objects() if type(o) is Channel)\n"
)
OF_NOBODY = "channel.send(Frame.RESULT, pack_result('forged'), number=7)\n"
RIGHT = (1.0, "right", False, 1.0, None)


@pytest.mark.processes
@pytest.mark.parametrize("times", [1, 2])
def test_frame_that_was_sent_ahead_answers_no_call(single, times):
    with pytest.raises(WorkerDied):
        execute(single, CHANNEL + times * OF_NOBODY)
    assert evaluate(single, "'honest'") == "honest"


@pytest.mark.processes
def test_worker_that_says_more_than_its_answer_is_replaced(single):
    before = evaluate(single, "__import__('os').getpid()")
    source = (
        f"{CHANNEL}import sys\n"
        "number = next(f.f_locals['number'] for f in [sys._getframe(i) for i in"
        " range(9)] if 'number' in f.f_locals)\n"
        "channel.send(Frame.RESULT, pack_result(None), number=number)\n"
        "channel.send(Frame.STARTED, number=8)\n"
    )
    execute(single, source)
    assert evaluate(single, "__import__('os').getpid()") != before


@pytest.mark.processes
def test_answer_that_is_longer_than_asked_for_is_the_end_of_its_worker(single):
    with pytest.raises(WorkerDied):
        single.call(
            eval, "'x' * 2000", deadline_s=LONG_S, trust=Trust(max_reply_bytes=1000)
        )


@pytest.mark.processes
@pytest.mark.parametrize(
    "answered",
    [
        "[(1e6, 'right', False, 1.0, None)]",
        "[(-5.0, 'wrong', False, 0.0, None)]",
        "[(float('nan'), 'wrong', False, 0.0, None)]",
        "[(1, 'right', False, 1.0, None)]",
        "[(True, 'right', False, 1.0, None)]",
        "[('1.0', 'right', False, 1.0, None)]",
        "[(None, 'right', False, 1.0, None)]",
        "[([1.0], 'right', False, 1.0, None)]",
        "[(10**5000, 'right', False, 1.0, None)]",
        "[(1.0, 'wonderful', False, 1.0, None)]",
        "[(1.0, 'wrong', False, 1.0, None)]",
        "[(0.0, 'right', False, 1.0, None)]",
        "[(1.0, ['right'], False, 1.0, None)]",
        "[(1.0, 'right', False, 2.0, None)]",
        "[(1.0, 'right', False, 1.0, 'x')]",
        "[(1.0, 'right')]",
        "[(1.0, 'right', 1, 1.0, None)]",
        "[[1.0, 'right', False, 1.0, None]]",
        "[]",
        "[(1.0, 'right', False, 1.0, None)] * 2",
        "None",
        "'right'",
    ],
)
def test_scores_that_cannot_be_are_the_end_of_their_worker(pool, answered):
    with pytest.raises(WorkerDied, match="what cannot be"):
        pool.call(eval, answered, deadline_s=LONG_S, trust=scores_of(["4"]))


@pytest.mark.processes
def test_scores_are_read_with_the_answers_that_were_sent(pool):
    scores = pool.call(eval, f"[{RIGHT}]", deadline_s=LONG_S, trust=scores_of(["4"]))
    assert scores == [Score(1.0, "right", "4")]


def test_rows_of_a_large_group_fit_into_a_reply():
    rows = [(0.123456789, "scorer_error", True, 0.123456789, 0.123456789)] * 512
    assert len(wire.pack_result(rows)) < MAX_REPLY_BYTES


@pytest.mark.parametrize("value", [1.0, 0.5, 0.05, 0.01, 0.0])
def test_what_a_scorer_makes_is_read_again(value):
    outcome = {1.0: "right", 0.5: "partial"}.get(value, "wrong")
    row = (value, outcome, False, value, None)
    assert read_rows(["4"], [row])[0].outcome == outcome


@pytest.mark.processes
def test_fraction_of_endless_integers_holds_nobody(pool):
    with pytest.raises(JobFailed, match="too long"):
        evaluate(pool, "__import__('fractions').Fraction(3**99999, 2**99999)")


def test_member_of_an_enum_does_not_travel():
    body = pickle.dumps(wire.Frame.RESULT)
    with pytest.raises(pickle.UnpicklingError):
        wire.unpack_result(body)


def test_fraction_of_ordinary_size_travels():
    assert wire.unpack_result(wire.pack_result(Fraction(1, 3**99))) == Fraction(
        1, 3**99
    )
