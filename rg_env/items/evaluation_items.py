"""The evaluation items, and the check of whether each task can be sampled.

A task is checked when one of its items is first drawn or evaluated: its evaluation
items are made, and the gold answer of one is scored. A task that makes no item, or
whose scorer rejects that answer, is left out. So the first groups do not wait for a
hundred other tasks, and no question of the evaluation is sampled before it is known.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import random
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any

from rg_env.errors import LibraryError, SettingError, counted
from rg_env.items.evaluation_specs import Attempts, evaluation_specs, load_preset
from rg_env.items.item import Item, first_usable, is_unusable
from rg_env.items.stream import Stream
from rg_env.items.task_check import gold_fault
from rg_env.tasks.library import TASKS
from rg_env.tasks.selection import TaskChoice
from rg_env.workers.pool_errors import PoolClosedError, PoolError, WorkerLostError
from rg_env.workers.worker_pool import WorkerPool, run_blocking

if TYPE_CHECKING:  # what makes items must not need pydantic
    from rg_env.items.run_stream import RunStream
    from rg_env.settings.environment_settings import CheckedSettings

logger = logging.getLogger(__name__)

Missing = tuple[Item, str]  # an evaluation item that is not used, and the reason


def evaluated_choices(
    selection: Sequence[TaskChoice], num_tasks: int | None, eval_seed: int
) -> list[TaskChoice]:
    """Return the choices to evaluate: all, or `num_tasks` chosen by `eval_seed`."""
    if num_tasks is None or num_tasks >= len(selection):
        return list(selection)
    chosen = random.Random(eval_seed).sample(range(len(selection)), num_tasks)
    return [selection[i] for i in sorted(chosen)]


def wanted_items(
    settings: CheckedSettings, stream: Stream
) -> tuple[dict[str, list[Attempts]], set[str]]:
    """Return the attempts at evaluation items by task, and the tasks evaluated.

    Of a task that is not evaluated, there is one item, to check it.
    """
    name, seed, level = settings.eval_preset, settings.eval_seed, settings.eval_level
    selection, difficulty = stream.choices, stream.difficulty
    preset = None if name is None else load_preset(name)
    offered = [c for c in selection if preset is None or c.task in preset.params]
    if not offered:
        raise SettingError(f"{name} has none of the chosen tasks", "eval_preset")
    evaluated = evaluated_choices(offered, settings.num_eval_tasks, seed)
    names = {choice.task for choice in evaluated}
    if preset is None:
        others = [choice for choice in selection if choice not in evaluated]
        samples = settings.num_eval_samples_per_task
        specs = evaluation_specs(evaluated, samples, seed, difficulty, level)
    else:
        others = [choice for choice in selection if choice.task not in names]
        specs = preset.specs(sorted(names))
        if absent := sorted({choice.task for choice in others} - preset.params.keys()):
            logger.info("not in %s and not evaluated: %s", name, ", ".join(absent))
        if changed := sorted(preset.changed & names):
            what = "because the library has changed, some questions are not those of"
            logger.warning("%s %s: %s", what, name, ", ".join(changed))
    specs += evaluation_specs(others, 1, seed, difficulty, level)
    wanted: dict[str, list[Attempts]] = {}
    for attempts in specs:
        wanted.setdefault(attempts[0].task, []).append(attempts)
    flat = sorted(names - difficulty.scales.keys())
    if level is not None and flat:
        what = "tasks without a scale, evaluated without a level"
        logger.info("%s: %s", what, ", ".join(flat))
    return dict(sorted(wanted.items())), names


class EvaluationItems:
    """The evaluation items of a run, made while the chosen tasks are checked.

    Args:
        wanted: Task to the attempts at each of its items; one item at least.
        evaluated: The tasks that are evaluated; the others are only checked.
        items: Those of the run, which leave out tasks and questions.
    """

    def __init__(
        self,
        pool: WorkerPool,
        settings: CheckedSettings,
        wanted: Mapping[str, Sequence[Attempts]],
        evaluated: Collection[str],
        items: RunStream,
    ) -> None:
        self._pool = pool
        self._settings = settings
        self._wanted = wanted
        self._evaluated = evaluated
        self._items = items
        self._checks: dict[str, asyncio.Task[None]] = {}
        self._results: dict[str, tuple[list[Item], list[Missing]]] = {}
        self.total = sum(map(len, wanted.values()))
        self.done = 0  # those that are made or given up
        # Called with the number of those that have just become it.
        self.on_done: Callable[[int], object] = lambda number: None

    def _sorted(self, place: int) -> list[Any]:
        by_task = [self._results[t] for t in self._wanted if t in self._results]
        return [one for result in by_task for one in result[place]]

    @property
    def missing(self) -> list[Missing]:
        """Items of evaluated tasks that are not used, each with the reason."""
        return self._sorted(1)

    def made_now(self) -> list[Item]:
        """Return the evaluation items, after waiting for them without an event loop."""
        rest = [task for task in self._evaluated if task not in self._results]
        checks = [partial(self._check, task) for task in rest]
        with ThreadPoolExecutor(self._settings.worker_count) as threads:
            list(threads.map(run_blocking, checks, repeat(self._pool)))
        return self._sorted(0)

    def drop(self) -> None:
        """Forget the evaluation items: others are evaluated."""
        self._evaluated = ()
        self._results.clear()

    def stop(self) -> None:
        """Give up what is not checked yet."""
        for check in self._checks.values():
            check.cancel()

    async def checked(self, task: str) -> None:
        """Wait until a task is checked; the first call begins the check."""
        if task in self._results:
            return
        if task not in self._checks:
            self._checks[task] = asyncio.create_task(self._check(task, self._pool))
        # Whoever waits may be cancelled, and others wait for the same check.
        await asyncio.shield(self._checks[task])

    async def finished(self) -> list[Item]:
        """Check all tasks and return the evaluation items.

        Raises:
            LibraryError: No chosen task can make an item.
        """
        is_new = self.done < self.total
        places = asyncio.Semaphore(self._settings.worker_count)

        async def checked(task: str) -> None:
            async with places:
                await self.checked(task)

        await asyncio.gather(*map(checked, self._wanted))
        if self._wanted.keys() <= self._items.left_out.keys():
            why = "no chosen task can make an item; the log names each with its reason"
            raise LibraryError(why)
        if is_new:
            tasks, items = len(self._wanted), len(self._sorted(0))
            done = f"checked {counted(tasks, 'task')}, made {counted(items, 'item')}"
            missing = Counter(item.task for item, _ in self.missing)
            logger.info("%s%s", done, f", missing {dict(missing)}" if missing else "")
        return self._sorted(0)

    async def _check(self, task: str, pool: WorkerPool) -> None:
        wanted = self._wanted[task]
        try:
            items, missing = await self._make(wanted, pool)
            fault = missing[-1][1] if missing else None
        except WorkerLostError as error:
            # Of a task of the library this says nothing: the machine has failed.
            fault = None if task in TASKS else str(error)
            items, missing = [], [(attempts[0], str(error)) for attempts in wanted]
        if items:
            fault = await gold_fault(pool, items[0], items[0].entry)
        if task in self._results:  # meanwhile, by `made_now` or before it
            return
        if fault is not None:
            self._items.leave_out(task, fault)
            items, missing = [], [(attempts[0], fault) for attempts in wanted]
        if task in self._evaluated:
            self._results[task] = items, missing
            self._items.keep_for_evaluation({item.question for item in items})
        self.done += len(wanted)
        self.on_done(len(wanted))

    async def _make(
        self, wanted: Sequence[Attempts], pool: WorkerPool
    ) -> tuple[list[Item], list[Missing]]:
        items: list[Item] = []
        missing: list[Missing] = []
        for attempts in wanted:
            try:
                item = await first_usable(
                    pool,
                    attempts,
                    deadline_s=self._settings.item_deadline_s,
                    checked=self._settings.scorer_fixes,
                )
            except (PoolClosedError, WorkerLostError):
                raise
            except PoolError as error:
                reason = error.message if is_unusable(error) else str(error)
                missing.append((attempts[0], reason))
            else:
                fields = self._items.stream.fields
                items.append(dataclasses.replace(item, **fields))
        return items, missing
