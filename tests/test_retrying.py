"""Calls that are tried again."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import weakref

import pytest
from tenacity import (
    AsyncRetrying,
    retry_if_exception_type,
    stop_after_attempt,
    wait_none,
)

from rg_env import retrying
from rg_env.retrying import tried_again

TRIES = 3


class Work:
    """Fails as often as it is told, and keeps what the controller was told."""

    def __init__(self, *failures):
        self.failures = list(failures)
        self.calls = self.controllers = 0
        self.said = []

    async def call(self):
        self.calls += 1
        if self.failures:
            raise self.failures.pop(0)
        return self.calls

    def controller(self):
        self.controllers += 1
        return AsyncRetrying(
            retry=retry_if_exception_type(OSError),
            stop=stop_after_attempt(TRIES),
            wait=wait_none(),
            before_sleep=lambda state: self.said.append(
                (state.attempt_number, str(state.outcome.exception()))
            ),
            reraise=True,
        )

    def done(self):
        return asyncio.run(tried_again(self.controller, self.call))


def test_a_call_that_succeeds_at_once_needs_no_controller():
    work = Work()
    assert (work.done(), work.controllers) == (1, 0)


def test_a_controller_is_told_of_the_first_try_too():
    work = Work(OSError("one"), OSError("two"))
    assert work.done() == 3
    assert work.said == [(1, "one"), (2, "two")]


def test_no_more_is_tried_than_the_controller_allows():
    work = Work(*(OSError(str(number)) for number in range(9)))
    with pytest.raises(OSError, match="2"):
        work.done()
    assert work.calls == TRIES


@pytest.mark.parametrize(
    "failures", [[ValueError("no")], [OSError("o"), ValueError("no")]]
)
def test_what_the_controller_does_not_count_is_raised(failures):
    work = Work(*failures)
    with pytest.raises(ValueError, match=str(failures[-1])):
        work.done()
    assert work.calls == len(failures)


def test_a_cancelled_call_is_not_tried_again():
    work = Work(asyncio.CancelledError())
    with pytest.raises(asyncio.CancelledError):
        work.done()
    assert (work.calls, work.controllers) == (1, 0)


def test_what_failed_calls_held_is_collected_soon():
    class Reply:
        """Weighs megabytes, say."""

    class Failing(Work):
        async def call(self):
            reply = Reply()
            replies.add(reply)
            return await super().call()

    async def often():
        for _ in range(4 * retrying.COLLECT_EVERY):
            work = Failing(*(OSError() for _ in range(TRIES)))
            with contextlib.suppress(OSError):
                await tried_again(work.controller, work.call)

    replies: weakref.WeakSet[Reply] = weakref.WeakSet()
    gc.collect()
    gc.disable()
    try:
        asyncio.run(often())
        assert len(replies) <= 2 * retrying.COLLECT_EVERY
    finally:
        gc.enable()


def test_calls_that_succeed_leave_nothing_to_the_garbage_collector():
    async def often():
        work = Work()
        for _ in range(100):
            await tried_again(work.controller, work.call)

    async def found():
        gc.collect()
        gc.disable()
        try:
            await often()
            return gc.collect()
        finally:
            gc.enable()

    assert asyncio.run(found()) < 10
