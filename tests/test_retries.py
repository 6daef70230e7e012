"""Calls that are tried again."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import Any

import pytest

from rg_env.retries import tried_again

TRIES = 3
E, NO = OSError, ValueError("no")


@pytest.mark.parametrize(
    ("failures", "calls"),
    [
        ([], 1),
        ([E("1"), E("2")], 3),
        ([E("1"), E("2"), E("3")], 3),  # no more is tried
        ([NO], 1),
        ([E("1"), NO], 2),
        ([asyncio.CancelledError()], 1),
    ],
)
def test_a_call_is_repeated_until_it_succeeds_or_is_not_worth_it(
    failures: list[BaseException], calls: int
) -> None:
    done, noted = 0, []

    async def call() -> str:
        nonlocal done
        done += 1
        if done <= len(failures):
            raise failures[done - 1]
        return "done"

    def may_repeat(error: Exception) -> bool:
        return isinstance(error, OSError)

    ends_well = len(failures) < calls
    expected: Any = nullcontext() if ends_well else pytest.raises(type(failures[-1]))
    with expected:
        work = tried_again(call, may_repeat, noted.append, tries=TRIES)
        assert asyncio.run(work) == "done"
    assert done == calls and noted == failures[: calls - 1]


def test_the_pauses_grow_up_to_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    monkeypatch.setattr("random.uniform", lambda low, high: 1.0)
    failures = [OSError() for _ in range(4)]

    async def call() -> None:
        if failures:
            raise failures.pop()

    asyncio.run(
        tried_again(
            call,
            lambda error: True,
            lambda error: None,
            first_pause_s=1.0,
            longest_pause_s=3.0,
        )
    )
    assert pauses == [1.0, 2.0, 3.0, 3.0]
