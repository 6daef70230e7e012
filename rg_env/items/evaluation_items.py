"""The evaluation items, and the check of whether each task can be sampled.

The items are the same in every process that has the same settings. A task is checked
when one of its items is first drawn or evaluated: its evaluation items are made, and
the gold answer of one is scored. A task that makes no item, or whose scorer rejects
that answer, is left out. So the first groups do not wait for a hundred other tasks, and
no question of the evaluation is sampled before it is known as one.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING

from rg_env.errors import LibraryError, counted
from rg_env.items.entry_maker import first_usable, is_unusable
from rg_env.items.group_scorer import TaskHandle
from rg_env.items.item_source import ItemSource, MadeItem
from rg_env.items.task_check import gold_fault
from rg_env.tasks.evaluation_specs import Attempts
from rg_env.tasks.item_stream import ItemSpec
from rg_env.tasks.library_import import TASKS
from rg_env.tasks.selection import TaskChoice
from rg_env.workers.pool_errors import PoolClosedError, PoolError, WorkerLostError
from rg_env.workers.worker_pool import WorkerPool, run_blocking

if TYPE_CHECKING:  # what makes items must not need pydantic
    from rg_env.settings.environment_settings import CheckedSettings

logger = logging.getLogger(__name__)

Missing = tuple[ItemSpec, str]
"""An evaluation item that is not used, and the reason."""


def evaluated_choices(
    selection: Sequence[TaskChoice], num_tasks: int | None, eval_seed: int
) -> list[TaskChoice]:
    """Return the choices to evaluate: all, or `num_tasks` chosen by `eval_seed`."""
    if num_tasks is None or num_tasks >= len(selection):
        return list(selection)
    chosen = random.Random(eval_seed).sample(range(len(selection)), num_tasks)
    return [selection[i] for i in sorted(chosen)]


async def make_eval_items(
    pool: WorkerPool,
    wanted: Sequence[Attempts],
    settings: CheckedSettings,
    handle: Callable[..., TaskHandle] = TaskHandle,
) -> tuple[list[MadeItem], list[Missing]]:
    """Make evaluation items, one after the other.

    Args:
        pool: Its workers make the entries.
        wanted: The attempts at each item, of which the first usable one is the item.
        settings: Those of the run.
        handle: Makes the handle of an item from the fields of its `ItemSpec`.

    Returns:
        The items, and those that are missing, with the reason.

    Raises:
        WorkerLostError: One after the other; the task has no part in it.
    """
    items: list[MadeItem] = []
    missing: list[Missing] = []
    for attempts in wanted:
        try:
            spec, entry = await first_usable(
                pool,
                attempts,
                deadline_s=settings.item_deadline_s,
                checked=settings.scorer_fixes,
            )
        except (PoolClosedError, WorkerLostError):
            raise
        except PoolError as error:
            reason = error.message if is_unusable(error) else str(error)
            missing.append((attempts[0], reason))
        else:
            items.append(MadeItem(entry, handle(**vars(spec))))
    return items, missing


class EvaluationItems:
    """The evaluation items of a run, made while the chosen tasks are checked.

    Args:
        wanted: Task to the attempts at each of its items; one item at least.
        evaluated: The tasks that are evaluated; the others are only checked.
        items: Told of the tasks that are left out and of the evaluation's questions.

    Attributes:
        total: Items that are made, one at least of each chosen task.
        done: Those that are made, or given up.
        on_done: Called with the number of those that have just become it.
    """

    def __init__(
        self,
        pool: WorkerPool,
        settings: CheckedSettings,
        wanted: Mapping[str, Sequence[Attempts]],
        evaluated: Collection[str],
        items: ItemSource,
    ) -> None:
        self._pool = pool
        self._settings = settings
        self._wanted = wanted
        self._evaluated = evaluated
        self._items = items
        self._checks: dict[str, asyncio.Task[None]] = {}
        self._made: dict[str, Sequence[MadeItem]] = {}
        self._missing: dict[str, Sequence[Missing]] = {}
        self.total = sum(map(len, wanted.values()))
        self.done = 0
        self.on_done: Callable[[int], object] = lambda number: None

    @property
    def made(self) -> list[MadeItem]:
        """The evaluation items made so far, in the order of the tasks."""
        return [item for task in self._wanted for item in self._made.get(task, ())]

    def made_now(self) -> list[MadeItem]:
        """Return the evaluation items, after waiting for those not made yet.

        For callers without an event loop; one in a loop awaits `finished` before.
        """
        left = [task for task in self._evaluated if task not in self._made]
        checks = [partial(self._check, task) for task in left]
        with ThreadPoolExecutor(self._settings.worker_count) as threads:
            list(threads.map(run_blocking, checks, repeat(self._pool)))
        return self.made

    def drop(self) -> None:
        """Forget the evaluation items: others are evaluated."""
        self._evaluated = ()
        self._made.clear()
        self._missing.clear()

    @property
    def missing(self) -> list[Missing]:
        """Items of evaluated tasks that are not used, each with the reason."""
        return [row for task in self._wanted for row in self._missing.get(task, ())]

    def stop(self) -> None:
        """Give up what is not checked yet."""
        for check in self._checks.values():
            check.cancel()

    async def checked(self, task: str) -> None:
        """Wait until a task is checked; the first call begins the check."""
        if task in self._made:
            return
        if task not in self._checks:
            self._checks[task] = asyncio.create_task(self._check(task, self._pool))
        # Whoever waits may be cancelled, and others wait for the same check.
        await asyncio.shield(self._checks[task])

    async def finished(self) -> list[MadeItem]:
        """Check all tasks that are not checked yet, and return the evaluation items.

        Raises:
            LibraryError: No chosen task can make an item.
        """
        is_new = self.done < self.total
        places = asyncio.Semaphore(self._settings.worker_count)

        async def checked(task: str) -> None:
            async with places:
                await self.checked(task)

        await asyncio.gather(*map(checked, self._wanted))
        if self._wanted.keys() <= self._items.maker.left_out.keys():
            raise LibraryError(
                "no chosen task can make an item; the log names each with its reason"
            )
        if is_new:
            few = [
                t for t, made in self._made.items() if len(made) < len(self._wanted[t])
            ]
            fewer = f", too few of {', '.join(few)}" if few else ""
            tasks, items = len(self._wanted), len(self.made)
            checks = f"checked {counted(tasks, 'task')}, made {counted(items, 'item')}"
            logger.info("%s%s", checks, fewer)
        return self.made

    async def _check(self, task: str, pool: WorkerPool) -> None:
        wanted, settings = self._wanted[task], self._settings
        try:
            items, missing = await make_eval_items(
                pool, wanted, settings, self._items.handle
            )
            fault = missing[-1][1] if missing else None
        except WorkerLostError as error:
            # Of a task of the library this says nothing: the machine has failed.
            fault = None if task in TASKS else str(error)
            items, missing = [], [(attempts[0], str(error)) for attempts in wanted]
        if items:
            fault = await gold_fault(pool, items[0].handle, items[0].entry)
        if task in self._made:  # meanwhile, by `made_now` or before it
            return
        if fault is not None:
            self._items.maker.leave_out(task, fault)
            items, missing = [], [(attempts[0], fault) for attempts in wanted]
        if task in self._evaluated:
            self._made[task], self._missing[task] = items, missing
            self._items.keep_for_evaluation({item.entry["question"] for item in items})
        self.done += len(wanted)
        self.on_done(len(wanted))
