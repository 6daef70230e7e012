"""The evaluation items, and the check of whether each task can be sampled.

Evaluation items have the library's default parameters or a level, and seeds that
`eval_seed` decides. Or they are those of a preset: the items that the library's authors
evaluated models on. `published_settings.json` has the parameters of each preset, and
the tasks whose questions have changed since because the library has changed.

A task is checked when one of its items is first drawn or evaluated: its evaluation
items are made, and the gold answer of one is scored. A task that makes no item, or
whose scorer rejects that answer, is left out. So the first groups do not wait for the
checks of all tasks, and a question of the evaluation is known before its task is
sampled.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import hashlib
import json
import logging
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rg_env.errors import LibraryError, SettingError, counted
from rg_env.library.registry import TASKS
from rg_env.library.task_check import gold_fault, is_unusable
from rg_env.stream.draws import Stream
from rg_env.stream.item import Item, ItemMaker, digest_of
from rg_env.stream.seeds import evaluation_seeds
from rg_env.stream.task_selection import TaskChoice
from rg_env.task_rules.table import rules_of
from rg_env.workers.call import PoolClosedError, PoolError, WorkerLostError
from rg_env.workers.worker_pool import WorkerPool, run_blocking

logger = logging.getLogger(__name__)

TABLE = Path(__file__).with_name("published_settings.json")
# Seed and size of every published dataset.
SEED = 45
SIZE = 50

Attempts = Sequence[Item]
"""The attempts at one evaluation item, which is the first with a usable entry."""

CheckedItem = tuple[Item, str]
"""An evaluation item, and the reason why it is not used, "" if it is used."""


@dataclasses.dataclass(frozen=True)
class Preset:
    """A published evaluation.

    Item i of a task is `create_dataset(task, seed=45, size=50, **params)[i]`.
    """

    name: str
    # Task to the dataset parameters that differ from the library's defaults.
    params: Mapping[str, Mapping[str, Any]]
    changed: Collection[str]  # tasks with other questions than the published ones

    def items(
        self, tasks: Iterable[str], build_item: Callable[..., Item]
    ) -> list[Attempts]:
        """Return its items of these tasks, one attempt at each.

        Args:
            tasks: The chosen tasks, of which it may have only some.
            build_item: Makes an item from its fields.

        Raises:
            SettingError: It has none of the tasks.
        """
        names = sorted(self.params.keys() & set(tasks))
        if not names:
            raise SettingError(f"{self.name} has none of the chosen tasks")
        if changed := [task for task in names if task in self.changed]:
            logger.warning(
                "because the library has changed, some questions are not those of"
                " %s: %s",
                self.name,
                ", ".join(changed),
            )
        items: list[Attempts] = []
        for task in names:
            # Most entries depend only on the sum of seed and index, the others need
            # the whole dataset.
            needs_dataset = rules_of(task).is_rebuilt
            for index in range(SIZE):
                item = build_item(
                    task=task,
                    params=self.params[task],
                    seed=SEED if needs_dataset else SEED + index,
                    index=index,
                    size=SIZE if needs_dataset else 1,
                    published=True,
                )
                items.append([item])
        return items


@functools.cache
def load_preset(name: str) -> Preset:
    """Return a preset by its name; SettingError if there is none.

    Example:
        >>> len(load_preset("rg-hard").items(["gcd"], Item))
        50
    """
    rows = json.loads(TABLE.read_bytes())["presets"]
    if name not in rows:
        raise SettingError(f"one of {', '.join(rows)}, found {name!r}", "preset")
    row = rows[name]
    return Preset(name, row["params"], row["changed"])


def evaluation_attempts(
    stream: Stream,
    choices: Iterable[TaskChoice],
    samples_per_task: int,
    eval_seed: int,
    level: float | None = None,
) -> list[Attempts]:
    """Return the attempts at `samples_per_task` evaluation items of each choice.

    The items are at `level` if their task has a scale. With None they have the
    library's default parameters, so that runs whose levels move can be compared; a
    task whose level is fixed is evaluated at that level.
    """
    difficulty = stream.difficulty
    items: list[Attempts] = []
    for choice in choices:
        task = choice.task
        task_level = difficulty.fixed_level(task)
        if level is not None and task in difficulty.scales:
            task_level = level
        for index in range(samples_per_task):
            seeds = evaluation_seeds(eval_seed, task, choice.params, index)
            items.append([stream.item_of(choice, s, task_level, index) for s in seeds])
    return items


def items_digest(items: Iterable[Item], release: str) -> str:
    """Return the digest of evaluation items, 16 hexadecimal digits.

    Two evaluations with the same digest had the same questions and reference answers in
    the same order, scored by the same version of the library. The digest covers the
    values that make each item (task, parameters, seed, index and size), its question
    and answer, and `release`, which stands for the library's scorers. It does not cover
    prompts, sampling, our corrections of scores and their settings, which results have
    beside it.
    """
    digest = hashlib.blake2b(release.encode(), digest_size=8)
    for item in items:
        values = [
            item.task,
            item.params,
            item.seed,
            item.index_and_size,
            item.digest or digest_of(item.entry),
        ]
        digest.update(msgspec.json.encode(values, order="sorted"))
    return digest.hexdigest()


def plan_evaluation(stream: Stream) -> tuple[dict[str, list[Attempts]], set[str]]:
    """Return the attempts at evaluation items by task, and the tasks to evaluate.

    A task that is not evaluated has one item, with which it is checked.
    """
    settings = stream.settings
    evaluated = list(stream.choices)
    preset = None
    if settings.eval_preset is not None:
        preset = load_preset(settings.eval_preset)
        evaluated = [c for c in evaluated if c.task in preset.params]
    num_tasks = settings.num_eval_tasks or len(evaluated)
    if num_tasks < len(evaluated):
        chosen = random.Random(settings.eval_seed).sample(evaluated, num_tasks)
        evaluated = [choice for choice in evaluated if choice in chosen]
    names = {choice.task for choice in evaluated}
    others = [choice for choice in stream.choices if choice.task not in names]
    attempts_at = functools.partial(
        evaluation_attempts,
        stream,
        eval_seed=settings.eval_seed,
        level=settings.eval_level,
    )
    if preset is None:
        items = attempts_at(evaluated, settings.num_eval_samples_per_task)
    else:
        items = preset.items(names, stream.build_item)
    by_task: dict[str, list[Attempts]] = {}
    for attempts in [*items, *attempts_at(others, 1)]:
        by_task.setdefault(attempts[0].task, []).append(attempts)
    return dict(sorted(by_task.items())), names


class EvaluationItems:
    """The evaluation items of a run, made while the chosen tasks are checked.

    Args:
        pool: Its workers make the items.
        stream: The stream that the run samples.
        wanted: The attempts at each item of a task, at least one item, by task.
        evaluated: The tasks that are evaluated; the others are only checked.

    Attributes:
        left_out: Reason why a task is left out, by task.
        questions: The questions of the items, which the run does not sample.
        total: Number of items of all tasks.
    """

    def __init__(
        self,
        pool: WorkerPool,
        stream: Stream,
        wanted: Mapping[str, Sequence[Attempts]],
        evaluated: Collection[str],
    ) -> None:
        self._pool = pool
        self._settings = stream.settings
        self._maker = ItemMaker(stream.settings.item_deadline_s)
        self._wanted = wanted
        self._evaluated = evaluated
        self.left_out: dict[str, str] = {}
        self.questions: set[str] = set()
        self.total = sum(map(len, wanted.values()))
        self._checks: dict[str, asyncio.Task[None]] = {}
        self._checked: dict[str, list[CheckedItem]] = {}

    @property
    def done(self) -> int:
        """Number of items of the tasks that are checked."""
        return sum(len(self._wanted[task]) for task in self._checked)

    @property
    def items(self) -> list[Item]:
        """The evaluation items that are made so far."""
        return [item for item, reason in self._checked_items() if not reason]

    @property
    def missing(self) -> list[CheckedItem]:
        """Evaluation items that are not used, each with the reason."""
        return [(item, reason) for item, reason in self._checked_items() if reason]

    def _checked_items(self) -> Iterator[CheckedItem]:
        for task in self._wanted:
            if task in self._evaluated:
                yield from self._checked.get(task, ())

    def wait_for_items(self) -> list[Item]:
        """Return the evaluation items; waits for them, without an event loop."""
        for task in self._evaluated:
            if task not in self._checked:
                run_blocking(functools.partial(self._check, task), self._pool)
        return self.items

    def drop(self) -> None:
        """Forget the evaluation items, because the user evaluates others."""
        self._evaluated = ()

    def stop(self) -> None:
        """Cancel the checks that are not done."""
        for check in self._checks.values():
            check.cancel()

    async def ensure_checked(self, task: str) -> None:
        """Wait until a task is checked; the first call starts the check."""
        if task in self._checked:
            return
        if task not in self._checks:
            self._checks[task] = asyncio.create_task(self._check(task, self._pool))
        # Shielded, because others may wait for the check if this caller is cancelled.
        await asyncio.shield(self._checks[task])

    async def check_all(
        self, on_done: Callable[[int], object] = lambda count: None
    ) -> list[Item]:
        """Check all tasks and return the evaluation items.

        Args:
            on_done: Called with the number of items that have just become `done`.

        Raises:
            LibraryError: No chosen task can make an item.
        """
        unchecked = [task for task in self._wanted if task not in self._checked]
        slots = asyncio.Semaphore(self._settings.worker_count)

        async def check(task: str) -> None:
            async with slots:
                await self.ensure_checked(task)
            on_done(len(self._wanted[task]))

        await asyncio.gather(*map(check, unchecked))
        if self._wanted.keys() <= self.left_out.keys():
            raise LibraryError(
                "no chosen task can make an item; the log names each with its reason"
            )
        if unchecked:
            missing = dict(Counter(item.task for item, _ in self.missing))
            logger.info(
                "checked %s, made %s%s",
                counted(len(self._wanted), "task"),
                counted(len(self.items), "item"),
                f", missing {missing}" if missing else "",
            )
        return self.items

    async def _check(self, task: str, pool: WorkerPool) -> None:
        """Make the items of a task and score a gold answer, and record the results."""
        checked, fault = await self._make(task, pool)
        items = [item for item, reason in checked if not reason]
        if items:
            item = items[0]
            fault = await gold_fault(
                pool,
                task,
                item.params,
                item.entry,
                rules=item.rules,
                deadline_s=item.deadline_s,
            )
        if task in self._checked:  # by another call meanwhile
            return
        if fault is not None:
            logger.warning("task %s is left out: %s", task, fault)
            self.left_out[task] = fault
            checked = [(attempts[0], fault) for attempts in self._wanted[task]]
        elif task in self._evaluated:
            self.questions.update(item.question for item in items)
        self._checked[task] = checked

    async def _make(
        self, task: str, pool: WorkerPool
    ) -> tuple[list[CheckedItem], str | None]:
        """Return the items of a task, and a fault of the task if one is not made."""
        checked: list[CheckedItem] = []
        fault = None
        for attempts in self._wanted[task]:
            try:
                item = await self._maker.make_first_usable(pool, attempts)
                checked.append((item, ""))
            except PoolClosedError:
                raise
            except PoolError as error:
                reason = error.message if is_unusable(error) else str(error)
                checked.append((attempts[0], reason))
                # A task of the library is not to blame if workers are lost.
                is_lost = isinstance(error, WorkerLostError) and task in TASKS
                fault = None if is_lost else reason
        return checked, fault
