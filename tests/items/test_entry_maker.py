"""Entries of a stream, made in workers of which one stays free."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import jobs_for_items
import pytest

from rg_env.items import worker_jobs
from rg_env.items.entry_maker import QUICK_MS, EntryMaker, LeftOutError, is_unusable
from rg_env.tasks.item_stream import ItemSpec
from rg_env.workers.pool_errors import JobError

WithMaker = Callable[..., Any]


@pytest.fixture
def with_maker(pool, monkeypatch):
    """Run some work on a maker and the first item of its stream."""
    monkeypatch.setattr(worker_jobs, "make_entry", jobs_for_items.make_entry)

    def run(work, *, expected_ms=0.0, checked=True, **params):
        async def with_first():
            maker = EntryMaker(
                pool,
                lambda task, level: expected_ms,
                making_at_once=1,
                deadline_s=30.0,
                checked=checked,
            )
            return await work(maker, ItemSpec("gcd", params, 7))

        return asyncio.run(with_first())

    return run


def test_no_entry_of_a_task_that_is_left_out_is_made(with_maker, logged):
    async def work(maker, spec):
        maker.leave_out("gcd", "it is broken")
        making = maker.begin(spec)
        assert isinstance(making.exception(), LeftOutError)

    with_maker(work)
    assert "task gcd is left out: it is broken" in logged.text


def test_an_entry_waits_for_the_check_of_its_task_which_may_leave_it_out(with_maker):
    async def work(maker, spec):
        tried = asyncio.Event()

        async def until_checked(task):
            await tried.wait()
            maker.leave_out(task, "its check failed")

        maker.wait_for_check(until_checked)
        making = maker.begin(spec)
        await asyncio.sleep(0.2)
        assert not making.done()
        tried.set()
        with pytest.raises(LeftOutError):
            await making

    with_maker(work)


@pytest.mark.parametrize(("expected_ms", "waits"), [(QUICK_MS + 1, True), (0.0, False)])
def test_a_slow_entry_leaves_a_place_to_a_quick_one(with_maker, expected_ms, waits):
    async def work(maker, spec):
        async with maker.places:
            making = maker.begin(spec)
            done, _ = await asyncio.wait({making}, timeout=0.3 if waits else 30.0)
            assert (not done) is waits
        assert (await making)["question"]

    with_maker(work, expected_ms=expected_ms)


def test_an_entry_that_nobody_can_solve_is_told_from_one_that_cannot_be_made(
    with_maker,
):
    async def work(maker, spec):
        with pytest.raises(JobError) as caught:
            await maker.begin(spec)
        assert is_unusable(caught.value)
        assert not is_unusable(LeftOutError(spec.task))

    with_maker(work, unusable_below=2**32)


def test_a_maker_that_does_not_check_takes_faulty_entries_as_they_are(with_maker):
    async def work(maker, spec):
        assert (await maker.begin(spec))["question"]

    with_maker(work, checked=False, unusable_below=2**32)
