"""How a signal ends a command."""

import asyncio
import contextlib
import io
import os
import signal
import time

import pytest

from rg_env import shutdown
from rg_env.errors import EXIT_FAILED
from rg_env.shutdown import Lifetime
from tests.support.worker_attacks import start_script


@pytest.fixture(autouse=True)
def handlers(monkeypatch):
    """Put all handlers back, and let nothing end the test's own process."""
    monkeypatch.setattr(shutdown, "_start_deadline", lambda status: None)
    before = {number: signal.getsignal(number) for number in shutdown.SIGNALS}
    yield before
    for number, handler in before.items():
        signal.signal(number, handler)


def send(number):
    os.kill(os.getpid(), number)


async def sent(number):
    send(number)
    await asyncio.sleep(60)


def handlers_now():
    return {number: signal.getsignal(number) for number in shutdown.SIGNALS}


def test_without_a_signal_work_runs_as_in_asyncio(handlers):
    assert shutdown.run(asyncio.sleep(0, "done")) == "done"
    assert handlers_now() == handlers


def test_a_closed_terminal_does_not_end_what_nohup_has_started():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)

    async def work():
        send(signal.SIGHUP)
        await asyncio.sleep(0.01)
        return "done"

    assert shutdown.run(work()) == "done"


def test_of_two_lifetimes_the_outer_one_is_cancelled():
    inner = Lifetime()

    async def work():
        await asyncio.create_task(inner.run(sent(signal.SIGTERM)))

    with pytest.raises(SystemExit) as end:
        shutdown.run(work())
    assert (end.value.code, inner.exit_status) == (143, 0)


@pytest.mark.parametrize("number", shutdown.SIGNALS)
def test_work_without_a_loop_is_undone(number, handlers):
    undone = []

    def work():
        with shutdown.handling_signals(), contextlib.closing(io.StringIO()) as file:
            undone.append(file)
            send(number)

    with pytest.raises(SystemExit) as end:
        work()
    undone = [file.closed for file in undone]
    assert (end.value.code, undone) == (128 + number, [True])
    assert handlers_now() == handlers


@pytest.mark.processes
@pytest.mark.parametrize(
    ("work", "expected", "status"),
    [
        ("await asyncio.sleep(60)", "undone\n", 128 + signal.SIGTERM),
        ("time.sleep(60)", "", 128 + signal.SIGTERM),
        ("os.kill(os.getpid(), 2)", "", -signal.SIGINT),
    ],
    ids=["is cancelled", "holds up the event loop", "is signalled again"],
)
def test_a_signal_ends_a_process_in_time_and_takes_no_objects_apart(
    tmp_path, work, expected, status
):
    source = f"""
import asyncio, atexit, os, time
from rg_env import shutdown

shutdown.END_WITHIN_S = 3.0

class Kept:
    def __del__(self):
        print("taken apart")

kept = Kept()
atexit.register(print, "undone")

async def work():
    os.kill(os.getpid(), 15)
    {work}

shutdown.run(work())
"""
    with start_script(tmp_path, source) as script:
        said = script.communicate(timeout=30)[0]
    assert (said, script.returncode) == (expected, status)


@pytest.mark.parametrize("has_signal", [False, True])
def test_the_grace_of_tasks_in_flight_counts_from_the_signal(monkeypatch, has_signal):
    async def run():
        task = asyncio.create_task(asyncio.sleep(0.1))
        await shutdown.cancel_and_wait([task, None], grace_s=60.0)
        return task.cancelled()

    if has_signal:
        monkeypatch.setattr(shutdown, "_signal_s", time.monotonic() - 100.0)
    assert asyncio.run(run()) is has_signal


# -- an environment --------------------------------------------------------------------


def closing(*steps):
    """Return the steps that were taken, after closing twice, and what was raised."""
    taken = []

    def step(name):
        async def take():
            taken.append(name)
            if name.startswith("bad"):
                raise RuntimeError(name)

        return take

    async def run():
        lifetime = Lifetime()
        try:
            await lifetime.close(*map(step, steps))
        finally:
            await lifetime.close(*map(step, steps))

    error = None
    try:
        asyncio.run(run())
    except RuntimeError as raised:
        error = str(raised)
    return taken, error


def test_a_step_that_fails_keeps_no_other_from_being_taken():
    taken, error = closing("bad files", "api", "bad pool", "summary")
    assert taken == ["bad files", "api", "bad pool", "summary"] and error == "bad pool"


def test_a_failure_is_an_exit_status_once_all_is_closed():
    lifetime, closed = Lifetime(), []

    async def work():
        lifetime.fail()

    async def close():
        closed.append(lifetime.exit_status)

    with pytest.raises(SystemExit) as end:
        asyncio.run(lifetime.run(work(), close))
    assert (end.value.code, closed) == (EXIT_FAILED, [EXIT_FAILED])


@pytest.mark.parametrize("number", shutdown.SIGNALS)
def test_a_signal_cancels_the_work_closes_and_names_itself(number, logged):
    closed = []

    async def close():
        closed.append(True)

    with pytest.raises(SystemExit) as end:
        asyncio.run(Lifetime().run(sent(number), close))
    assert (end.value.code, closed) == (128 + number, [True])
    assert f"{number.name}: shutting down" in logged.text


def test_an_end_that_has_begun_is_not_cut_short_by_a_cancellation():
    closed = []

    async def run():
        begun, may_end = asyncio.Event(), asyncio.Event()

        async def close():
            begun.set()
            await may_end.wait()
            closed.append(True)

        task = asyncio.create_task(Lifetime().run(asyncio.sleep(0), close))
        await begun.wait()
        task.cancel()
        await asyncio.sleep(0)
        may_end.set()
        await asyncio.gather(task, return_exceptions=True)
        return task.cancelled()

    assert asyncio.run(run()) and closed == [True]
