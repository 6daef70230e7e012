"""The evaluation items, and the check of whether each task can be sampled.

The items are the same in every process that has the same settings. Every chosen task
is checked: its evaluation items are made and the gold answer of one is scored. A task
that makes no item, or whose scorer rejects that answer, is left out. The checks run in
the background of a run; an item of a task waits for the check of its task alone, so
that the first groups do not wait for a hundred others.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from rg_env.errors import LibraryError, counted
from rg_env.items import worker_jobs
from rg_env.items.entry_maker import is_unusable
from rg_env.items.group_scorer import TaskHandle
from rg_env.items.item_source import ItemSource, MadeItem
from rg_env.items.task_check import gold_fault
from rg_env.tasks.evaluation_specs import EvalSpec
from rg_env.tasks.selection import TaskChoice
from rg_env.workers.pool_errors import JobError, PoolClosedError, PoolError
from rg_env.workers.worker_pool import WorkerPool

if TYPE_CHECKING:  # what makes items must not need pydantic
    from rg_env.settings.environment_settings import CheckedSettings

logger = logging.getLogger(__name__)

CHECK_AGAIN_S = 0.05
"""How soon the background checks again whether a run waits for an item."""


def evaluated_choices(
    selection: Sequence[TaskChoice], num_tasks: int | None, eval_seed: int
) -> list[TaskChoice]:
    """Return the choices to evaluate: all, or `num_tasks` chosen by `eval_seed`."""
    if num_tasks is None or num_tasks >= len(selection):
        return list(selection)
    chosen = random.Random(eval_seed).sample(range(len(selection)), num_tasks)
    return [selection[i] for i in sorted(chosen)]


async def make_eval_items(
    pool: WorkerPool, specs: Sequence[EvalSpec], settings: CheckedSettings
) -> tuple[list[MadeItem], list[tuple[EvalSpec, str]]]:
    """Make evaluation items, one after the other.

    One that is not used is replaced by the next attempt at it, if it has one.

    Returns:
        The items, and those that are missing, with the reason.
    """
    items: list[MadeItem] = []
    missing: list[tuple[EvalSpec, str]] = []
    for spec in specs:
        made = await _made_or_reason(pool, spec, settings)
        if isinstance(made, str):
            missing.append((spec, made))
        else:
            items.append(made)
    return items, missing


async def _made_or_reason(
    pool: WorkerPool, wanted: EvalSpec, settings: CheckedSettings
) -> MadeItem | str:
    reason = ""
    for spec in (wanted, *wanted.others):
        try:
            entry = await pool.run(
                worker_jobs.make_entry,
                spec.task,
                dict(spec.params),
                spec.seed,
                settings.scoring_rules.scorer_fixes,
                spec.published,
                spec.place,
                deadline_s=settings.item_deadline_s,
            )
        except PoolClosedError:
            raise
        except PoolError as error:
            if not (isinstance(error, JobError) and is_unusable(error)):
                return str(error)
            reason = error.message
        else:
            handle = TaskHandle(
                task=spec.task,
                params=spec.params,
                seed=spec.seed,
                index=spec.number,
                size=spec.size,
                split="evaluation",
                level=spec.level,
                deadline_s=settings.scoring_deadline_s,
                rules=settings.scoring_rules,
                task_modules=tuple(settings.task_modules),
            )
            return MadeItem(entry, handle)
    return reason


class EvaluationItems:
    """The evaluation items of a run, made while all chosen tasks are checked.

    Args:
        specs: Task to what is made of it, at least one spec each.
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
        specs: Mapping[str, Sequence[EvalSpec]],
        evaluated: Collection[str],
        items: ItemSource,
    ) -> None:
        self._pool = pool
        self._settings = settings
        self._specs = specs
        self._evaluated = evaluated
        self._items = items
        self._checks: dict[str, asyncio.Task[None]] = {}
        self._made: dict[str, Sequence[MadeItem]] = {}
        self._missing: dict[str, Sequence[tuple[EvalSpec, str]]] = {}
        self._background: asyncio.Task[None] | None = None
        self._is_awaited = asyncio.Event()
        self.total = sum(map(len, specs.values()))
        self.done = 0
        self.on_done: Callable[[int], object] = lambda number: None

    @property
    def made(self) -> list[MadeItem]:
        """The evaluation items made so far, in the order of the tasks."""
        return [item for task in self._specs for item in self._made.get(task, ())]

    @property
    def missing(self) -> list[tuple[EvalSpec, str]]:
        """Items of evaluated tasks that are not used, each with the reason."""
        return [row for task in self._specs for row in self._missing.get(task, ())]

    def start(self) -> asyncio.Task[None]:
        """Begin to check all tasks in the background, while a run needs no item."""
        self._background = asyncio.create_task(self._check_all())
        self._background.add_done_callback(_log_failure)
        return self._background

    def stop(self) -> None:
        """Give up what is not checked yet."""
        for task in (self._background, *self._checks.values()):
            if task is not None:
                task.cancel()

    async def checked(self, task: str) -> None:
        """Wait until a task is checked; it begins at once if it has not begun."""
        if task not in self._checks:
            self._checks[task] = asyncio.create_task(self._check(task))
        await asyncio.shield(self._checks[task])

    async def finished(self) -> list[MadeItem]:
        """Wait until all tasks are checked, and return the evaluation items.

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

    async def _check_all(self) -> None:
        for task in self._specs:
            while self._items.is_awaited and not self._is_awaited.is_set():  # noqa: ASYNC110
                await asyncio.sleep(CHECK_AGAIN_S)
            if self._is_awaited.is_set():
                break
            async with self._items.maker.places:
                await self.checked(task)
        places = asyncio.Semaphore(self._settings.worker_count)

        async def checked(task: str) -> None:
            async with places:
                await self.checked(task)

        await asyncio.gather(*map(checked, self._specs))
        short = [t for t, made in self._made.items() if len(made) < len(self._specs[t])]
        fewer = f", too few of {', '.join(short)}" if short else ""
        tasks, items = len(self._specs), len(self.made)
        checks = f"checked {counted(tasks, 'task')}, made {counted(items, 'item')}"
        logger.info("%s%s", checks, fewer)

    async def _check(self, task: str) -> None:
        items, missing = await make_eval_items(
            self._pool, self._specs[task], self._settings
        )
        fault = missing[-1][1] if missing else None
        if items:
            params, entry = items[0].handle.params, items[0].entry
            rules = self._settings.scoring_rules
            fault = await gold_fault(self._pool, task, params, entry, rules)
        if fault is not None:
            self._items.maker.leave_out(task, fault)
            items, missing = [], [(spec, fault) for spec in self._specs[task]]
        if task in self._evaluated:
            self._made[task], self._missing[task] = items, missing
            self._items.keep_for_evaluation({item.entry["question"] for item in items})
        self.done += len(self._specs[task])
        self.on_done(len(self._specs[task]))


def _log_failure(checks: asyncio.Task[None]) -> None:
    if not checks.cancelled() and checks.exception() is not None:
        logger.error("the checks of the tasks ended", exc_info=checks.exception())
