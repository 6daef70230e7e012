"""How a signal ends a command."""

import asyncio
import contextlib
import io
import os
import signal

import pytest

from rg_env import ending
from tests.support.worker_attacks import start_script


@pytest.fixture(autouse=True)
def handlers(monkeypatch):
    """Put all handlers back, and let nothing end the test's own process."""
    monkeypatch.setattr(ending, "_end_in_time", lambda status, within_s: None)
    before = {number: signal.getsignal(number) for number in ending.SIGNALS}
    yield before
    for number, handler in before.items():
        signal.signal(number, handler)


def send(number):
    os.kill(os.getpid(), number)


async def sent(number):
    send(number)
    await asyncio.sleep(60)


def handlers_now():
    return {number: signal.getsignal(number) for number in ending.SIGNALS}


def test_without_a_signal_it_is_as_asyncio_runs_it(handlers):
    assert ending.run(asyncio.sleep(0, "done")) == "done"
    assert handlers_now() == handlers


@pytest.mark.parametrize("number", ending.SIGNALS)
def test_a_signal_cancels_and_is_the_status(number):
    noted = []
    with pytest.raises(SystemExit) as end:
        ending.run(sent(number), noted.append)
    assert (end.value.code, noted) == (128 + number, [number])


def test_what_is_cancelled_may_take_its_time():
    ended = []

    async def work():
        try:
            await sent(signal.SIGINT)
        finally:
            await asyncio.sleep(0.01)
            ended.append(True)

    with pytest.raises(SystemExit):
        ending.run(work())
    assert ended == [True]


def test_an_error_is_raised_as_it_is(handlers):
    async def work():
        raise KeyError("x")

    with pytest.raises(KeyError):
        ending.run(work())
    assert handlers_now() == handlers


def test_a_closed_terminal_does_not_end_what_nohup_has_started():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)

    async def work():
        send(signal.SIGHUP)
        await asyncio.sleep(0.01)
        return "done"

    assert ending.run(work()) == "done"


def test_of_two_that_hear_the_outer_one_is_cancelled():
    inner = []

    async def hear():
        with ending.signals_cancel(asyncio.current_task(), inner.append):
            await sent(signal.SIGTERM)

    async def work():
        await asyncio.create_task(hear())

    with pytest.raises(SystemExit) as end:
        ending.run(work())
    assert (end.value.code, inner) == (143, [])


@pytest.mark.parametrize("number", ending.SIGNALS)
def test_work_without_a_loop_is_undone(number, handlers):
    undone = []

    def work():
        with ending.undoing(), contextlib.closing(io.StringIO()) as file:
            undone.append(file)
            send(number)

    with pytest.raises(ending.StoppedError) as end:
        work()
    undone = [file.closed for file in undone]
    assert (end.value.status, undone) == (128 + number, [True])
    assert handlers_now() == handlers


@pytest.mark.processes
def test_a_signal_ends_a_process_without_taking_its_objects_apart(tmp_path):
    source = """
import asyncio, atexit, os
from rg_env import ending

class Kept:
    def __del__(self):
        print("taken apart")

kept = Kept()
atexit.register(print, "undone")

async def work():
    os.kill(os.getpid(), 15)
    await asyncio.sleep(60)

ending.run(work())
"""
    with start_script(tmp_path, source) as script:
        said = script.communicate()[0]
    assert (said, script.returncode) == ("undone\n", 128 + signal.SIGTERM)


@pytest.mark.processes
@pytest.mark.parametrize("number", ending.SIGNALS)
def test_a_signal_to_a_forked_child_ends_the_child_alone(number):
    async def work():
        child = os.fork()
        if not child:
            default = signal.signal(number, lambda *_: None)
            send(number)
            signal.signal(number, default)
            send(number)
            os._exit(0)
        status = os.waitpid(child, 0)[1]  # noqa: ASYNC222 - it ends at once
        await asyncio.sleep(0.01)  # what a signal of the child would end
        return os.waitstatus_to_exitcode(status)

    signal.signal(number, signal.SIG_DFL)
    assert ending.run(work()) == -number
