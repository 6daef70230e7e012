"""The evaluation items, and the check of whether each task can be sampled.

Ours are of the library's defaults or of a level, with seeds that `eval_seed` decides.
A preset has the very items that the library's authors evaluated models on: item i of a
task is `create_dataset(task, seed=45, size=50, **params)[i]`. `published_settings.json`
holds the parameters, and which tasks have other questions by now, since the library
has changed.

A task is checked when one of its items is first drawn or evaluated: its evaluation
items are made, and the gold answer of one is scored. A task that makes no item, or
whose scorer rejects that answer, is left out. So the first groups do not wait for a
hundred other tasks, and no question of the evaluation is sampled before it is known.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import json
import logging
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rg_env.errors import LibraryError, SettingError, counted
from rg_env.library.registry import TASKS
from rg_env.library.task_check import gold_fault, is_unusable
from rg_env.stream.difficulty import NO_LEVELS, Difficulty
from rg_env.stream.item import Item, first_usable
from rg_env.stream.sampler import MAX_ATTEMPTS, evaluation_seed
from rg_env.stream.selection import TaskChoice
from rg_env.stream.stream import Stream
from rg_env.task_rules.table import rules_of
from rg_env.workers.pool_errors import PoolClosedError, PoolError, WorkerLostError
from rg_env.workers.worker_pool import WorkerPool, run_blocking

logger = logging.getLogger(__name__)

TABLE = Path(__file__).with_name("published_settings.json")
# Seed and size of every published data set.
SEED, SIZE = 45, 50

Attempts = Sequence[Item]
"""What may become one evaluation item: the first of these whose entry can be used."""

Missing = tuple[Item, str]
"""An evaluation item that is not used, and the reason."""


@dataclasses.dataclass(frozen=True)
class Preset:
    """A published evaluation."""

    name: str
    # Task to the dataset parameters that differ from the library's defaults.
    params: Mapping[str, Mapping[str, Any]]
    changed: frozenset[str]  # tasks of which not all questions are the published ones

    def specs(self, tasks: Iterable[str]) -> list[Attempts]:
        """Return the items of those of the tasks that it has, one attempt at each.

        Raises:
            SettingError: It has none of them.
        """
        names = sorted(self.params.keys() & set(tasks))
        if not names:
            raise SettingError(f"{self.name} has none of the chosen tasks")
        if changed := [task for task in names if task in self.changed]:
            what = "because the library has changed, some questions are not those of"
            logger.warning("%s %s: %s", what, self.name, ", ".join(changed))
        specs: list[Attempts] = []
        for task in names:
            # For others the seed of an entry and its index are as good as their sum.
            is_whole = rules_of(task).is_rebuilt
            for number in range(SIZE):
                seed, size = (SEED, SIZE) if is_whole else (SEED + number, 1)
                how = (task, self.params[task], seed, None, number)
                specs.append([Item(*how, size=size, published=True)])
        return specs


@functools.cache
def load_preset(name: str) -> Preset:
    """Return a preset; SettingError if there is none of that name."""
    rows = json.loads(TABLE.read_text(encoding="utf-8"))["presets"]
    if name not in rows:
        raise SettingError(f"one of {', '.join(rows)}, found {name!r}", "preset")
    row = rows[name]
    return Preset(name, row["params"], frozenset(row["changed"]))


def evaluation_specs(
    choices: Sequence[TaskChoice],
    samples_per_task: int,
    eval_seed: int,
    difficulty: Difficulty = NO_LEVELS,
    level: float | None = None,
) -> list[Attempts]:
    """Return the evaluation items of some choices, so many of each.

    They are at `level` where their task has a scale. With None they are of the
    library's default parameters, so that runs whose levels move can be compared; a
    task whose level is fixed is evaluated at that level.
    """

    def attempt_at(choice: TaskChoice, number: int, attempt: int) -> Item:
        task, own = choice.task, difficulty.fixed_level(choice.task)
        if level is not None and task in difficulty.scales:
            own = level
        seed = evaluation_seed(eval_seed, task, choice.params, number, attempt)
        params = difficulty.params_at(task, own, seed) | dict(choice.params)
        return Item(task, params, seed, own, number)

    return [
        [attempt_at(choice, number, attempt) for attempt in range(MAX_ATTEMPTS)]
        for choice in choices
        for number in range(samples_per_task)
    ]


def wanted_items(stream: Stream) -> tuple[dict[str, list[Attempts]], set[str]]:
    """Return the attempts at evaluation items by task, and the tasks evaluated.

    Of a task that is not evaluated, there is one item, to check it.
    """
    settings, choices = stream.settings, stream.choices
    name, seed = settings.eval_preset, settings.eval_seed
    how: Any = (seed, stream.difficulty, settings.eval_level)
    preset = None if name is None else load_preset(name)
    evaluated = [c for c in choices if preset is None or c.task in preset.params]
    number = min(settings.num_eval_tasks or len(evaluated), len(evaluated))
    if number < len(evaluated):
        chosen = random.Random(seed).sample(range(len(evaluated)), number)
        evaluated = [evaluated[i] for i in sorted(chosen)]
    names = {choice.task for choice in evaluated}
    others = [choice for choice in choices if choice.task not in names]
    if preset is None:
        specs = evaluation_specs(evaluated, settings.num_eval_samples_per_task, *how)
    else:
        specs = preset.specs(names)
    wanted: dict[str, list[Attempts]] = {}
    for attempts in [*specs, *evaluation_specs(others, 1, *how)]:
        wanted.setdefault(attempts[0].task, []).append(attempts)
    return dict(sorted(wanted.items())), names


class EvaluationItems:
    """The evaluation items of a run, made while the chosen tasks are checked.

    Args:
        stream: What the run samples.
        wanted: Task to the attempts at each of its items; one item at least.
        evaluated: The tasks that are evaluated; the others are only checked.

    Attributes:
        left_out: Task that makes no item, or that rejects its answer, to the reason.
        questions: Those of the items, which the run does not sample.
    """

    def __init__(
        self,
        pool: WorkerPool,
        stream: Stream,
        wanted: Mapping[str, Sequence[Attempts]],
        evaluated: Collection[str],
    ) -> None:
        self._pool = pool
        self._stream = stream
        self._wanted = wanted
        self._evaluated = evaluated
        self.left_out: dict[str, str] = {}
        self.questions: set[str] = set()
        self._checks: dict[str, asyncio.Task[None]] = {}
        self._results: dict[str, tuple[list[Item], list[Missing]]] = {}
        self.total = sum(map(len, wanted.values()))

    @property
    def done(self) -> int:
        """Number of the items that are made or given up."""
        return sum(len(self._wanted[task]) for task in self._results)

    @property
    def _sorted(self) -> list[tuple[list[Item], list[Missing]]]:
        return [self._results[task] for task in self._wanted if task in self._results]

    @property
    def items(self) -> list[Item]:
        """The items that are there so far."""
        return [item for items, _ in self._sorted for item in items]

    @property
    def missing(self) -> list[Missing]:
        """Items of evaluated tasks that are not used, each with the reason."""
        return [one for _, missing in self._sorted for one in missing]

    def items_now(self) -> list[Item]:
        """Return the evaluation items, after waiting for them without an event loop."""
        for task in self._evaluated:
            if task not in self._results:
                run_blocking(functools.partial(self._check, task), self._pool)
        return self.items

    def drop(self) -> None:
        """Forget the evaluation items: others are evaluated."""
        self._evaluated = ()
        self._results = {task: ([], []) for task in self._results}

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

    async def finished(
        self, on_done: Callable[[int], object] = lambda number: None
    ) -> list[Item]:
        """Check all tasks and return the evaluation items.

        Args:
            on_done: Called with the number of items that have just become `done`.

        Raises:
            LibraryError: No chosen task can make an item.
        """
        rest = [task for task in self._wanted if task not in self._results]
        places = asyncio.Semaphore(self._stream.settings.worker_count)

        async def checked(task: str) -> None:
            async with places:
                await self.checked(task)
            on_done(len(self._wanted[task]))

        await asyncio.gather(*map(checked, rest))
        if self._wanted.keys() <= self.left_out.keys():
            why = "no chosen task can make an item; the log names each with its reason"
            raise LibraryError(why)
        if rest:
            tasks, items = len(self._wanted), len(self.items)
            done = f"checked {counted(tasks, 'task')}, made {counted(items, 'item')}"
            missing = Counter(item.task for item, _ in self.missing)
            logger.info("%s%s", done, f", missing {dict(missing)}" if missing else "")
        return self.items

    async def _check(self, task: str, pool: WorkerPool) -> None:
        wanted, stream = self._wanted[task], self._stream
        items, missing = list[Item](), list[Missing]()
        fault: str | None = None
        try:
            for attempts in wanted:
                each = (dataclasses.replace(one, **stream.fields) for one in attempts)
                try:
                    deadline_s = stream.settings.item_deadline_s
                    items.append(await first_usable(pool, each, deadline_s))
                except (PoolClosedError, WorkerLostError):
                    raise
                except PoolError as error:
                    fault = error.message if is_unusable(error) else str(error)
                    missing.append((attempts[0], fault))
        except WorkerLostError as error:
            # Of a task of the library this says nothing: the machine has failed.
            fault = None if task in TASKS else str(error)
            items, missing = [], [(attempts[0], str(error)) for attempts in wanted]
        if items:
            one = items[0]
            of_item = (one.task, one.params, one.entry, one.rules, one.deadline_s)
            fault = await gold_fault(pool, *of_item)
        if task in self._results:  # meanwhile, by `items_now` or before it
            return
        if fault is not None:
            logger.warning("task %s is left out: %s", task, fault)
            self.left_out[task] = fault
            items, missing = [], [(attempts[0], fault) for attempts in wanted]
        if task not in self._evaluated:
            items, missing = [], []
        self._results[task] = items, missing
        self.questions.update(item.question for item in items)
