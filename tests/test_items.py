"""The stream of items that the workers make ahead."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from rg_env.answers.rules import ScoringRules
from rg_env.isolation import items as items_module
from rg_env.isolation import jobs
from rg_env.isolation.items import ItemSource, NoItems
from rg_env.isolation.pool import WorkerPool
from rg_env.tasks.sampler import Sampler
from rg_env.tasks.selection import TaskChoice

GOOD = TaskChoice("gcd")
BAD = TaskChoice("gcd", params={"min_numbers": -1})
"""The library refuses to build this dataset."""


def with_source(
    work: Callable[[ItemSource], Awaitable[Any]],
    choices: list[TaskChoice],
    *,
    num_workers: int = 1,
    lookahead: int = 4,
) -> Any:
    """Run some work on a source over real workers."""

    async def run() -> Any:
        pool = WorkerPool(num_workers, preload=jobs.PRELOAD)
        try:
            source = ItemSource(
                pool,
                Sampler([choice.weight for choice in choices], 7),
                choices,
                lookahead=lookahead,
                item_deadline_s=30.0,
                scoring_deadline_s=30.0,
                rules=ScoringRules(),
            )
            result = await work(source)
            source.cancel_ahead()
            return result
        finally:
            pool.close()

    return asyncio.run(run())


async def indices(source: ItemSource, count: int = 8) -> list[int]:
    return [(await source.next_item()).handle.index for _ in range(count)]


def test_items_come_in_the_order_of_the_stream() -> None:
    assert with_source(indices, [GOOD]) == list(range(8))


@pytest.mark.parametrize(("num_workers", "lookahead"), [(1, 1), (2, 12)])
def test_how_far_ahead_items_are_made_changes_none(
    num_workers: int, lookahead: int
) -> None:
    async def questions(source: ItemSource) -> list[str]:
        return [(await source.next_item()).entry["question"] for _ in range(8)]

    made = with_source(questions, [GOOD], num_workers=num_workers, lookahead=lookahead)
    assert made == with_source(questions, [GOOD])


def test_a_draw_that_gives_no_entry_uses_up_its_index_and_is_counted() -> None:
    async def work(source: ItemSource) -> None:
        got = await indices(source)
        assert got == sorted(set(got))
        assert source.failures["gcd"] == source.position - len(got) > 0

    with_source(work, [GOOD, BAD])


def test_a_task_that_is_left_out_is_skipped_and_said(
    logged: pytest.LogCaptureFixture,
) -> None:
    async def work(source: ItemSource) -> None:
        source.leave_out({"lcm": "it is broken"})
        tasks = {(await source.next_item()).handle.task for _ in range(8)}
        assert tasks == {"gcd"}

    with_source(work, [GOOD, TaskChoice("lcm")])
    assert "lcm is left out: it is broken" in logged.text


def test_a_position_that_was_saved_gives_the_item_that_would_have_come() -> None:
    async def work(source: ItemSource) -> None:
        await indices(source, 3)
        state = source.state_dict()
        expected = await indices(source, 3)
        source.load_state_dict(state)
        assert await indices(source, 3) == expected

    with_source(work, [GOOD])


def test_a_source_that_can_make_nothing_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(items_module, "MAX_FAILURES_IN_A_ROW", 5)

    async def work(source: ItemSource) -> None:
        with pytest.raises(NoItems):
            await source.next_item()

    with_source(work, [BAD])
