"""What an item of a task costs on this machine, step by step of its scale."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rg_env.items.task_check import make_items
from rg_env.tasks.scales import Scale
from rg_env.workers.pool_errors import DeadlineExceeded, JobFailed
from rg_env.workers.worker_pool import WorkerPool

MEASURED_ITEMS = 6
MEASURED_MS = 2_000.0
"""Time after which a step gets no further item."""


async def _item_ms(pool: WorkerPool, task: str, params: Mapping[str, Any]) -> float:
    """Return the median time to make an item, in milliseconds.

    The first one is left out if there are more: it has the dataset to build.

    Raises:
        DeadlineExceeded: An item was not ready in time.
        JobFailed: An item cannot be made, or the library made none that can be asked.
    """
    made = await make_items(
        pool, task, params, "tasks", MEASURED_ITEMS, enough_ms=MEASURED_MS
    )
    times_ms = [took_ms for took_ms, _ in made]
    return statistics.median(times_ms[1:] or times_ms)


def steps_to_measure(scales: Mapping[str, Scale | None]) -> list[tuple[str, int]]:
    """Return (task, number) of every step of one task, of both ends of several."""
    numbers = {
        task: range(1 if scale is None else len(scale.steps))
        for task, scale in scales.items()
    }
    return [
        (task, number)
        for task, steps in numbers.items()
        for number in steps
        if len(scales) == 1 or number in (steps[0], steps[-1])
    ]


async def measured(
    pool: WorkerPool,
    places: int,
    scales: Mapping[str, Scale | None],
    steps: Iterable[tuple[str, int]],
    advance: Callable[[str], object] = lambda task: None,
) -> dict[str, dict[int, float | str]]:
    """Measure steps of tasks.

    Args:
        pool: Where the items are made.
        places: How many are made at once.
        scales: Task to its scale, None where it has none.
        steps: What is measured, as `steps_to_measure` returns it.
        advance: Told of the task of each step that was measured.

    Returns:
        Task to the number of a step to its cost, or to why it has none.
    """
    found: dict[str, dict[int, float | str]] = {task: {} for task in scales}
    free = asyncio.Semaphore(places)

    async def measure(task: str, number: int) -> None:
        scale = scales[task]
        params = {} if scale is None else scale.steps[number].params
        async with free:
            try:
                found[task][number] = await _item_ms(pool, task, params)
            except (DeadlineExceeded, JobFailed) as error:
                found[task][number] = f"step {number + 1}: {error}"
        advance(task)

    await asyncio.gather(*(measure(*each) for each in steps))
    return found
