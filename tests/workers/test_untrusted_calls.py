"""A frame of a worker counts only as a valid reply to its call."""

import functools

import pytest

from rg_env.library import worker_jobs
from rg_env.reward.score import read_scores
from rg_env.workers.call import CallOptions, WorkerDiedError
from tests.support.worker_attacks import LONG_S, evaluate, execute, worker_of

CHANNEL = """\
import gc
from rg_env.workers.wire import Channel, Frame, pack
(channel,) = (o for o in gc.get_objects() if type(o) is Channel)
"""
WRONG_ID = "channel.send(Frame.RESULT, pack('forged'), call_id=7)\n"
FIND_ID = """\
import sys
frames = [sys._getframe(i) for i in range(9)]
call_id = next(f.f_locals['call'].call_id for f in frames if 'call' in f.f_locals)
"""
FORGE = """\
from rg_env.library import worker_jobs
def forged(params): return 5
worker_jobs.rejected_params.__code__ = forged.__code__
"""


@pytest.mark.processes
def test_worker_that_sends_more_than_its_reply_is_replaced(single):
    before = worker_of(single)
    source = f"""\
{CHANNEL}{FIND_ID}channel.send(Frame.RESULT, pack(None), call_id=call_id)
channel.send(Frame.STARTED, call_id=8)
"""
    execute(single, source)
    assert worker_of(single) != before


def sent(frame, body):
    return f"{FIND_ID}channel.send(Frame.{frame}, {body}, call_id=call_id)\n"


NO_REPLIES = {
    "sent ahead": WRONG_ID,
    "sent ahead twice": 2 * WRONG_ID,
    **{kind: sent(kind, "pack('forged')") for kind in ("READY", "CALL", "STARTED")},
    "the fork server's word": sent("ENDED", "pack('forged')"),
    "a failure of no JSON": sent("FAILURE", "b'no JSON'"),
    "a failure of a text": sent("FAILURE", "pack('two')"),
    "a failure of numbers": sent("FAILURE", "pack((1, 2, 3))"),
}


@pytest.mark.processes
@pytest.mark.parametrize("case", NO_REPLIES)
def test_frame_that_is_no_reply_to_the_call_ends_its_worker(single, case):
    reason = "invalid reply" if "failure" in case else None
    with pytest.raises(WorkerDiedError, match=reason):
        execute(single, CHANNEL + NO_REPLIES[case])
    assert evaluate(single, "'right'") == "right"


@pytest.mark.processes
def test_reply_of_another_type_than_the_job_is_annotated_with_ends_its_worker(single):
    single.call(exec, FORGE, {}, deadline_s=LONG_S)
    before = single.deaths
    assert single.call(worker_jobs.rejected_params, [], deadline_s=LONG_S) is None
    assert single.deaths == before + 1


@pytest.mark.processes
def test_reply_that_is_longer_than_its_limit_ends_its_worker(single):
    program = "__import__('sys').modules['rg_env.workers.worker_program']"
    forged = f"setattr({program}, 'len', lambda body: 0) or 'x' * 2000"
    short = CallOptions(max_reply_bytes=1000)
    with pytest.raises(WorkerDiedError):
        single.call(eval, forged, deadline_s=LONG_S, options=short)


READS_SCORES = CallOptions(read=functools.partial(read_scores, ["4"]))


IMPOSSIBLE = """
[(1e6, 'right', False, 1.0, None)]
[(-5.0, 'wrong', False, 0.0, None)]
[(float('nan'), 'wrong', False, 0.0, None)]
[(True, 'right', False, 1.0, None)]
[('1.0', 'right', False, 1.0, None)]
[(10**4000, 'right', False, 1.0, None)]
[(1.0, 'wonderful', False, 1.0, None)]
[(1.0, 'wrong', False, 1.0, None)]
[(0.0, 'right', False, 1.0, None)]
[(1.0, ['right'], False, 1.0, None)]
[(1.0, 'right', False, 2.0, None)]
[(1.0, 'right', False, 1.0, 'x')]
[(1.0, 'right')]
[]
[(1.0, 'right', False, 1.0, None)] * 2
None
"""


@pytest.mark.processes
@pytest.mark.parametrize("scores", IMPOSSIBLE.strip().splitlines())
def test_impossible_scores_end_their_worker(pool, scores):
    with pytest.raises(WorkerDiedError, match="invalid reply"):
        pool.call(eval, scores, deadline_s=LONG_S, options=READS_SCORES)


UNTRUSTED = CallOptions(untrusted=True, max_untrusted_calls=3)
SPOIL = "import builtins; builtins.spoilt = True"
IS_SPOILT = "hasattr(__import__('builtins'), 'spoilt')"


def is_spoilt(pool, options):
    return pool.call(eval, IS_SPOILT, deadline_s=LONG_S, options=options)


@pytest.mark.processes
def test_process_of_untrusted_calls_is_replaced_after_the_last_one(single):
    found = []
    for _ in range(3):
        single.call(exec, SPOIL, {}, deadline_s=LONG_S, options=UNTRUSTED)
        found += [is_spoilt(single, UNTRUSTED) for _ in range(3)]
    assert found.count(False) >= 3


@pytest.mark.processes
def test_untrusted_calls_and_others_never_share_a_process(single):
    single.call(exec, SPOIL, {}, deadline_s=LONG_S, options=UNTRUSTED)
    assert not is_spoilt(single, CallOptions())
