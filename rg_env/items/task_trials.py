"""The evaluation items of each task, and whether the task can be asked at all.

Every chosen task is tried: its evaluation items are made and the gold answer of one is
scored. A task that makes no item, or whose scorer rejects that answer, is left
out. Trials run in the background of a run; an item of a task waits for the trial of
its task alone, so that the first groups do not wait for a hundred others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence

from rg_env.errors import LibraryError
from rg_env.items.evaluation_items import make_eval_items
from rg_env.items.item_settings import ItemSettings
from rg_env.items.item_source import ItemSource, MadeItem
from rg_env.items.task_check import gold_fault
from rg_env.tasks.item_stream import EvalSpec
from rg_env.workers.worker_pool import WorkerPool

logger = logging.getLogger(__name__)

LOOK_AGAIN_S = 0.05
"""How soon the background looks again whether a run waits for an item."""


class TaskTrials:
    """The trials of all chosen tasks.

    Args:
        pool: Where items are made and scored.
        settings: The settings.
        specs: Task to what is made of it, at least one spec each.
        evaluated: The tasks that are evaluated; the others are only tried.
        items: Told of the tasks that are left out and of the evaluation's questions.
    """

    def __init__(
        self,
        pool: WorkerPool,
        settings: ItemSettings,
        specs: Mapping[str, Sequence[EvalSpec]],
        evaluated: Collection[str],
        items: ItemSource,
    ) -> None:
        self._pool = pool
        self._config = settings
        self._specs = specs
        self._evaluated = evaluated
        self._items = items
        self._trials: dict[str, asyncio.Task[None]] = {}
        self._made: dict[str, Sequence[MadeItem]] = {}
        self._background: asyncio.Task[None] | None = None
        self._is_awaited = asyncio.Event()

    @property
    def made(self) -> list[MadeItem]:
        """The evaluation items made so far, in the order of the tasks."""
        return [item for task in self._specs for item in self._made.get(task, ())]

    def start(self) -> asyncio.Task[None]:
        """Begin to try all tasks in the background, while a run needs no item."""
        number = sum(len(self._specs[task]) for task in self._evaluated)
        logger.info("making %d evaluation items", number)
        self._background = asyncio.create_task(self._try_all())
        self._background.add_done_callback(_log_failure)
        return self._background

    def stop(self) -> None:
        """Give up what is not tried yet."""
        for task in (self._background, *self._trials.values()):
            if task is not None:
                task.cancel()

    async def of(self, task: str) -> None:
        """Wait until a task is tried; it begins at once if it has not begun."""
        if task not in self._trials:
            self._trials[task] = asyncio.create_task(self._try(task))
        await asyncio.shield(self._trials[task])

    async def finished(self) -> list[MadeItem]:
        """Wait until all tasks are tried, and return the evaluation items.

        Raises:
            LibraryError: No chosen task can make an item.
        """
        self._is_awaited.set()
        await asyncio.shield(self._background or self.start())
        if not set(self._specs) - set(self._items.maker.left_out):
            raise LibraryError(
                "no chosen task can make an item; the log names each with its reason"
            )
        return self.made

    async def _try_all(self) -> None:
        for task in self._specs:
            while self._items.is_awaited and not self._is_awaited.is_set():  # noqa: ASYNC110
                await asyncio.sleep(LOOK_AGAIN_S)
            if self._is_awaited.is_set():
                break
            async with self._items.maker.places:
                await self.of(task)
        places = asyncio.Semaphore(self._config.worker_count)

        async def tried(task: str) -> None:
            async with places:
                await self.of(task)

        await asyncio.gather(*map(tried, self._specs))
        short = [t for t, made in self._made.items() if len(made) < len(self._specs[t])]
        fewer = f", too few of {', '.join(short)}" if short else ""
        logger.info("%d evaluation items are made%s", len(self.made), fewer)

    async def _try(self, task: str) -> None:
        specs = self._specs[task]
        found = await make_eval_items(self._pool, specs, self._config)
        reason = found.left_out.get(task)
        if reason is None:
            first = found.items[0]
            reason = await gold_fault(
                self._pool,
                task,
                first.handle.params,
                first.entry,
                self._config.scoring_rules,
            )
        if reason is not None:
            self._items.maker.leave_out({task: reason})
        elif task in self._evaluated:
            self._made[task] = found.items
            self._items.keep_for_evaluation(
                {item.entry["question"] for item in found.items}
            )


def _log_failure(trials: asyncio.Task[None]) -> None:
    if not trials.cancelled() and trials.exception() is not None:
        logger.error("the trials of the tasks ended", exc_info=trials.exception())
