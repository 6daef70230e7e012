"""How a pool takes and queues calls, abandons them and closes."""

import asyncio
import math
import operator
import os
import threading
import time
from pathlib import Path

import pytest

from rg_env.workers.call import DeadlineExceededError, PoolClosedError
from rg_env.workers.worker_pool import WorkerPool, default_pool_size
from tests.support.processes import descendants
from tests.support.worker_attacks import (
    HANG_IN_C,
    LONG_S,
    new_pool,
    start_script,
    works,
)

pytestmark = pytest.mark.processes


@pytest.mark.parametrize(("cores", "workers"), [(None, 2), (2, 2), (12, 6), (64, 8)])
def test_a_pool_has_half_as_many_workers_as_cores_within_bounds(
    monkeypatch, cores, workers
):
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert default_pool_size() == workers


def test_calls_from_many_threads_get_their_own_results(pool):
    results = {}

    def ask(number):
        results[number] = pool.call(operator.neg, number, deadline_s=LONG_S)

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {i: -i for i in range(40)}


def test_run_cancelled_at_any_moment_loses_no_worker():
    async def cancel_often(pool):
        for i in range(60):
            tasks = [
                asyncio.create_task(pool.run(math.sqrt, 4.0, deadline_s=LONG_S))
                for _ in range(3)
            ]
            await asyncio.sleep(i * 1e-5)
            for task in tasks[i % 2 :]:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return await asyncio.wait_for(pool.run(math.sqrt, 9.0, deadline_s=LONG_S), 20)

    with new_pool() as pool:
        assert asyncio.run(cancel_often(pool)) == 3.0
        assert pool.deaths == 0


def test_close_leaves_no_process_and_can_be_repeated():
    before = descendants(os.getpid())
    pool = WorkerPool(2)
    hang = pool.submit(exec, HANG_IN_C, {}, deadline_s=LONG_S)
    works(pool)
    started = descendants(os.getpid()) - before
    assert len(started) == 3
    pool.close()
    pool.close()
    assert not started & descendants(os.getpid())
    with pytest.raises(PoolClosedError):
        hang.result()
    with pytest.raises(PoolClosedError):
        pool.submit(math.sqrt, 4.0, deadline_s=LONG_S)


def test_close_fails_queued_calls():
    async def close_under_waiters(pool):
        calls = [pool.run(time.sleep, 60, deadline_s=LONG_S) for _ in range(4)]
        tasks = [asyncio.create_task(call) for call in calls]
        await asyncio.sleep(0.5)
        await asyncio.to_thread(pool.close)
        return await asyncio.gather(*tasks, return_exceptions=True)

    results = asyncio.run(close_under_waiters(WorkerPool(1)))
    assert [type(result) for result in results] == [PoolClosedError] * 4


def test_close_during_preloading_does_not_wait_for_it(tmp_path, monkeypatch):
    (tmp_path / "endless_module.py").write_text("import time; time.sleep(600)")
    monkeypatch.syspath_prepend(str(tmp_path))
    pool = WorkerPool(1, preload=["endless_module"])
    call = pool.submit(math.sqrt, 4.0, deadline_s=LONG_S)
    pool.close()
    with pytest.raises(PoolClosedError):
        call.result()


def test_pool_can_be_closed_by_the_callback_of_a_call_that_closing_fails():
    pool = WorkerPool(1)
    pool.submit(time.sleep, 60, deadline_s=LONG_S)
    waiting = pool.submit(math.sqrt, 4.0, deadline_s=LONG_S)
    waiting.add_done_callback(lambda _: pool.close())
    closing = threading.Thread(target=pool.close, daemon=True)
    closing.start()
    closing.join(20)
    assert not closing.is_alive()


def test_repeated_pools_leak_no_handle_and_no_thread():
    def open_and_close():
        with new_pool(2) as pool:
            works(pool)
            with pytest.raises(DeadlineExceededError):
                pool.call(exec, HANG_IN_C, {}, deadline_s=0.05)
        return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()

    first = open_and_close()
    assert [open_and_close() for _ in range(3)] == [first] * 3


def test_program_that_does_not_close_its_pool_ends(tmp_path):
    source = """\
import math
from rg_env.workers.worker_pool import WorkerPool
print(WorkerPool(1).call(math.sqrt, 4.0, deadline_s=60))
"""
    with start_script(tmp_path, source) as script:
        assert script.wait(20) == 0
