"""Calls that are tried again."""

from __future__ import annotations

import asyncio
import gc

import pytest

from rg_env.retries import tried_again

TRIES = 3


class Work:
    """Fails as often as it is told, and keeps what is said of it."""

    def __init__(self, *failures: BaseException) -> None:
        self.failures = list(failures)
        self.calls = 0
        self.said: list[str] = []

    async def call(self) -> int:
        self.calls += 1
        if self.failures:
            raise self.failures.pop(0)
        return self.calls

    async def again(self) -> int:
        def note(error: Exception) -> None:
            self.said.append(str(error))

        return await tried_again(
            self.call, lambda error: isinstance(error, OSError), note, tries=TRIES
        )

    def done(self) -> int:
        return asyncio.run(self.again())


def test_a_call_is_repeated_until_it_succeeds_and_each_failure_is_said() -> None:
    work = Work(OSError("one"), OSError("two"))
    assert work.done() == 3
    assert work.said == ["one", "two"]


def test_no_more_is_tried_than_is_allowed() -> None:
    work = Work(*(OSError(str(number)) for number in range(9)))
    with pytest.raises(OSError, match="2"):
        work.done()
    assert work.calls == TRIES


@pytest.mark.parametrize(
    "failures", [[ValueError("no")], [OSError("o"), ValueError("no")]]
)
def test_what_is_not_worth_repeating_is_raised(failures: list[Exception]) -> None:
    work = Work(*failures)
    with pytest.raises(ValueError, match=str(failures[-1])):
        work.done()
    assert work.calls == len(failures)


def test_a_cancelled_call_is_not_tried_again() -> None:
    work = Work(asyncio.CancelledError())
    with pytest.raises(asyncio.CancelledError):
        work.done()
    assert work.calls == 1


def test_the_pauses_grow_up_to_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    monkeypatch.setattr("random.uniform", lambda low, high: 1.0)
    work = Work(*(OSError() for _ in range(4)))
    asyncio.run(
        tried_again(
            work.call,
            lambda error: True,
            lambda error: None,
            first_pause_s=1.0,
            longest_pause_s=3.0,
        )
    )
    assert pauses == [1.0, 2.0, 3.0, 3.0]


@pytest.mark.slow
def test_calls_leave_nothing_to_the_garbage_collector() -> None:
    async def found() -> int:
        gc.collect()
        gc.disable()
        try:
            for _ in range(100):
                await Work(OSError()).again()
            return gc.collect()
        finally:
            gc.enable()

    assert asyncio.run(found()) < 10
