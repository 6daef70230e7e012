"""Jobs that hang or die: each ends its own worker and no other call."""

import contextlib
import functools
import math
import operator
import os
import pickle
import signal
import time

import pytest

from rg_env.workers.call import (
    CallOptions,
    DeadlineExceededError,
    JobError,
    WorkerDiedError,
    WorkerLostError,
)
from rg_env.workers.worker_pool import MAX_ATTEMPTS
from tests.support.worker_attacks import (
    HANG_IN_C,
    LONG_S,
    evaluate,
    execute,
    new_pool,
    worker_of,
    works,
)

pytestmark = pytest.mark.processes

STOP_SELF = "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"
KILL_SELF = "import os; os.kill(os.getpid(), 9)"


def test_hangs_end_at_their_deadline_and_other_calls_go_on():
    attacks = (HANG_IN_C, "while True: pass")
    with new_pool(3) as pool:
        works(pool)
        hangs = [pool.submit(exec, attack, {}, deadline_s=1.0) for attack in attacks]
        for _ in range(20):
            assert works(pool)
        for hang in hangs:
            assert not hang.done()
        for hang in hangs:
            with pytest.raises(DeadlineExceededError):
                hang.result()


@pytest.mark.parametrize("attack", [STOP_SELF, "import time; time.sleep(600)"])
def test_worker_that_waits_is_ended_and_the_job_not_blamed(single, attack, monkeypatch):
    monkeypatch.setattr("rg_env.workers.call.MIN_WALL_LIMIT_S", 1.0)
    with pytest.raises(
        WorkerLostError, match=r"used .* s of CPU time in 1 s: it waits"
    ):
        execute(single, attack, deadline_s=0.05)
    assert works(single)


BURN = (
    "import time\nend = time.process_time() + 0.5\nwhile time.process_time() < end: 0"
)


def test_deadline_does_not_count_the_preparation(single):
    prepare = functools.partial(exec, BURN, {})
    options = CallOptions(prepare=prepare)
    assert single.call(math.sqrt, 4.0, deadline_s=0.2, options=options) == 2.0


def test_preparation_that_hangs_is_ended_and_the_job_not_blamed(single, monkeypatch):
    monkeypatch.setattr("rg_env.workers.call.PREPARING_LIMIT_S", 0.2)
    options = CallOptions(prepare=functools.partial(exec, HANG_IN_C, {}))
    with pytest.raises(
        WorkerLostError, match=r"preparing the job: not done after 0\.2 s"
    ):
        single.call(math.sqrt, 4.0, deadline_s=LONG_S, options=options)


def test_job_that_hides_its_cpu_time_is_ended(single):
    hide = "import time\ntime.process_time = time.thread_time = lambda: 0.0\n"
    with pytest.raises(DeadlineExceededError):
        execute(single, f"{hide}{HANG_IN_C}", deadline_s=0.2)


@pytest.mark.parametrize(
    ("attack", "end"),
    [
        ("import os; os._exit(3)", "status 3"),
        ("import os; os.abort()", "signal 6"),
        ("import os; os.closerange(3, 256)", ""),
        ("import os\nfor fd in range(3, 99):\n os.write(fd, b'junk' * 99)", ""),
    ],
)
def test_death_fails_only_its_own_call(pool, attack, end):
    neighbour = pool.submit(time.sleep, 0.2, deadline_s=LONG_S)
    dying = pool.submit(exec, attack, {}, deadline_s=LONG_S)
    waiting = [pool.submit(math.sqrt, 4.0, deadline_s=LONG_S) for _ in range(5)]
    with (
        pytest.raises(WorkerDiedError, match=end)
        if end
        else contextlib.suppress(Exception)
    ):
        dying.result(timeout=LONG_S)
    assert neighbour.result() is None
    assert [call.result() for call in waiting] == [2.0] * 5


def test_call_whose_worker_is_killed_runs_again_on_another(single):
    first = worker_of(single)
    for signal_sent in (signal.SIGKILL, signal.SIGTERM):
        killed = worker_of(single)
        source = "__import__('time').sleep(pid == __import__('os').getpid()) or 5"
        call = single.submit(eval, source, {"pid": killed}, deadline_s=LONG_S)
        time.sleep(0.2)
        os.kill(killed, signal_sent)
        assert call.result() == 5
    assert worker_of(single) != first


@pytest.mark.parametrize(
    ("source", "prepare"), [(KILL_SELF, ""), ("", KILL_SELF)], ids=["job", "preparing"]
)
def test_job_whose_workers_are_all_killed_is_not_blamed(single, source, prepare):
    before = single.deaths
    options = CallOptions(prepare=functools.partial(exec, prepare, {}))
    with pytest.raises(
        WorkerLostError, match=f"{MAX_ATTEMPTS} workers ended.*signal 9"
    ):
        single.call(exec, source, {}, deadline_s=LONG_S, options=options)
    assert single.deaths == before + MAX_ATTEMPTS


def test_job_that_ends_only_its_first_worker_is_not_blamed(single):
    first = worker_of(single)
    source = "__import__('os').getpid() == pid and __import__('os')._exit(3) or 5"
    assert evaluate(single, source, pid=first) == 5


def test_workers_that_end_during_a_call_are_counted(single):
    before = single.deaths
    os.kill(worker_of(single), signal.SIGKILL)
    time.sleep(0.2)  # it was idle
    assert works(single)
    with pytest.raises(JobError):
        single.call(int, "x", deadline_s=LONG_S)
    with pytest.raises(DeadlineExceededError):
        execute(single, HANG_IN_C, deadline_s=0.1)
    assert single.deaths == before
    with pytest.raises(WorkerDiedError):
        single.call(os._exit, 1, deadline_s=LONG_S)
    assert works(single)
    assert single.deaths == before + 2


def test_memory_limit_fails_that_call_only():
    with new_pool(memory_limit_bytes=2**30) as pool:
        with pytest.raises((JobError, WorkerDiedError)):
            pool.call(operator.mul, b"x", 2**32, deadline_s=LONG_S)
        assert works(pool)


def test_deadline_does_not_count_waiting(single):
    single.submit(time.sleep, 1.0, deadline_s=LONG_S)
    assert single.submit(math.sqrt, 4.0, deadline_s=0.5).result() == 2.0


def test_job_that_cannot_be_pickled_is_refused_at_once(pool):
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pool.submit(lambda: 0, deadline_s=LONG_S)
