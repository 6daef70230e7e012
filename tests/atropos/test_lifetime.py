"""From the beginning of a command to its end."""

import asyncio
import gc
import os
import signal

import pytest

from rg_env import ending
from rg_env.atropos.lifetime import Lifetime
from rg_env.errors import EXIT_FAILED
from tests.support.parts import build_env


def test_the_search_for_garbage_is_spared_during_a_run_and_as_before_afterwards():
    env, before, during = build_env(), gc.get_threshold(), []

    async def work():
        during.append((gc.get_freeze_count() > 10_000, gc.get_threshold() != before))

    asyncio.run(env._lifetime.run(work(), env.close))
    assert during == [(True, True)]
    assert (gc.get_freeze_count(), gc.get_threshold()) == (0, before)


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


def test_the_steps_of_the_end_are_taken_once_and_in_their_order():
    assert closing("groups", "files", "api") == (["groups", "files", "api"], None)


def test_a_step_that_fails_keeps_no_other_from_being_taken():
    taken, error = closing("bad files", "api", "bad pool", "summary")
    assert taken == ["bad files", "api", "bad pool", "summary"] and error == "bad pool"


def test_work_that_fails_is_closed_and_its_error_raised():
    closed = []

    async def work():
        raise KeyError("x")

    async def close():
        closed.append(True)

    with pytest.raises(KeyError):
        asyncio.run(Lifetime().run(work(), close))
    assert closed == [True]


def test_a_failure_is_an_exit_status_once_all_is_closed():
    lifetime, closed = Lifetime(), []

    async def work():
        lifetime.fail()

    async def close():
        closed.append(lifetime.exit_status)

    with pytest.raises(SystemExit) as end:
        asyncio.run(lifetime.run(work(), close))
    assert (end.value.code, closed) == (EXIT_FAILED, [EXIT_FAILED])


@pytest.mark.parametrize("number", ending.SIGNALS)
def test_a_signal_cancels_the_work_closes_and_names_itself(number, monkeypatch):
    closed = []

    async def work():
        os.kill(os.getpid(), number)
        await asyncio.sleep(60)

    async def close():
        closed.append(True)

    lifetime = Lifetime()
    # It would end the test's own process.
    monkeypatch.setattr(ending, "_end_in_time", lambda status, within_s: None)
    before = signal.getsignal(number)
    try:
        with pytest.raises(SystemExit) as end:
            asyncio.run(lifetime.run(work(), close))
    finally:
        signal.signal(number, before)
    assert (end.value.code, closed) == (ending.EXIT_SIGNAL + number, [True])


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
