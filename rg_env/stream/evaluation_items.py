"""The evaluation items, and the check of whether each task can be sampled.

Evaluation items are of the library's defaults or of a level, with seeds that
`eval_seed` decides, or those of a preset: the very items that the library's authors
evaluated models on. `published_settings.json` has the parameters of a preset, and the
tasks whose questions have changed since, because the library has.

A task is checked when one of its items is first drawn or evaluated: its evaluation
items are made, and the gold answer of one is scored. A task that makes no item, or
whose scorer rejects that answer, is left out. So the first groups do not wait for a
hundred other tasks, and no question of the evaluation is sampled before it is known.
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
# Seed and size of every published data set.
SEED = 45
SIZE = 50

Attempts = Sequence[Item]
"""The attempts at one evaluation item, which is the first with a usable entry."""

Outcome = tuple[Item, str]
"""An evaluation item, and the reason why it is not used, "" if it is."""


@dataclasses.dataclass(frozen=True)
class Preset:
    """A published evaluation.

    Item i of a task is `create_dataset(task, seed=45, size=50, **params)[i]`.
    """

    name: str
    # Task to the dataset parameters that differ from the library's defaults.
    params: Mapping[str, Mapping[str, Any]]
    changed: frozenset[str]  # tasks with other questions than the published ones

    def items(
        self, tasks: Iterable[str], build_item: Callable[..., Item]
    ) -> list[Attempts]:
        """Return the items of those of the tasks that it has, one attempt at each.

        `build_item` makes an item of its fields, which the preset gives.

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
        specs: list[Attempts] = []
        for task in names:
            # Most entries depend on the sum of seed and index alone.
            is_whole = rules_of(task).is_rebuilt
            for number in range(SIZE):
                item = build_item(
                    task=task,
                    params=self.params[task],
                    seed=SEED if is_whole else SEED + number,
                    index=number,
                    size=SIZE if is_whole else 1,
                    published=True,
                )
                specs.append([item])
        return specs


@functools.cache
def load_preset(name: str) -> Preset:
    """Return a preset; SettingError if there is none of that name.

    Example:
        >>> len(load_preset("rg-hard").items(["gcd"], Item))
        50
    """
    rows = json.loads(TABLE.read_text(encoding="utf-8"))["presets"]
    if name not in rows:
        raise SettingError(f"one of {', '.join(rows)}, found {name!r}", "preset")
    row = rows[name]
    return Preset(name, row["params"], frozenset(row["changed"]))


def evaluation_specs(
    stream: Stream,
    choices: Iterable[TaskChoice],
    samples_per_task: int,
    eval_seed: int,
    level: float | None = None,
) -> list[Attempts]:
    """Return the attempts at the evaluation items of some choices, so many of each.

    They are at `level` where their task has a scale. With None they are of the
    library's default parameters, so that runs whose levels move can be compared; a
    task whose level is fixed is evaluated at that level.
    """
    difficulty = stream.difficulty
    specs: list[Attempts] = []
    for choice in choices:
        task = choice.task
        own = difficulty.fixed_level(task)
        if level is not None and task in difficulty.scales:
            own = level
        for number in range(samples_per_task):
            seeds = evaluation_seeds(eval_seed, task, choice.params, number)
            specs.append([stream.item(choice, seed, own, number) for seed in seeds])
    return specs


def items_digest(items: Iterable[Item], release: str) -> str:
    """Return the digest of evaluation items, 16 hexadecimal digits.

    Two evaluations with the same digest had the same questions and reference answers in
    the same order, scored by the same version of the library. The digest covers what
    makes each item (task, parameters, seed, place), its question and answer, and
    `release`, because the library's scorers are part of it. It does not cover prompts,
    sampling, our corrections of scores and their settings, which results have beside
    it.
    """
    digest = hashlib.blake2b(release.encode(), digest_size=8)
    for item in items:
        made_by = [item.task, item.params, item.seed, item.place]
        made_by.append(item.digest or digest_of(item.entry))
        digest.update(msgspec.json.encode(made_by, order="sorted"))
    return digest.hexdigest()


def wanted_items(stream: Stream) -> tuple[dict[str, list[Attempts]], set[str]]:
    """Return the attempts at evaluation items by task, and the tasks evaluated.

    A task that is not evaluated has one item, by which it is checked.
    """
    settings = stream.settings
    evaluated = list(stream.choices)
    preset = None
    if settings.eval_preset is not None:
        preset = load_preset(settings.eval_preset)
        evaluated = [c for c in evaluated if c.task in preset.params]
    if (number := settings.num_eval_tasks or len(evaluated)) < len(evaluated):
        chosen = random.Random(settings.eval_seed).sample(evaluated, number)
        evaluated = [choice for choice in evaluated if choice in chosen]
    names = {choice.task for choice in evaluated}
    others = [choice for choice in stream.choices if choice.task not in names]
    specs_of = functools.partial(
        evaluation_specs,
        stream,
        eval_seed=settings.eval_seed,
        level=settings.eval_level,
    )
    if preset is None:
        specs = specs_of(evaluated, settings.num_eval_samples_per_task)
    else:
        specs = preset.items(names, stream.build_item)
    wanted: dict[str, list[Attempts]] = {}
    for attempts in [*specs, *specs_of(others, 1)]:
        wanted.setdefault(attempts[0].task, []).append(attempts)
    return dict(sorted(wanted.items())), names


class EvaluationItems:
    """The evaluation items of a run, made while the chosen tasks are checked.

    Args:
        pool: Its workers make the items.
        stream: The stream that the run samples.
        wanted: Task to the attempts at each of its items; one item at least.
        evaluated: The tasks that are evaluated; the others are only checked.

    Attributes:
        left_out: Task that makes no item, or that rejects its answer, to the reason.
        questions: The questions of the items, which the run does not sample.
        total: Number of the items.
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
        self._outcomes: dict[str, list[Outcome]] = {}

    @property
    def done(self) -> int:
        """Number of the items that are made or given up."""
        return sum(len(self._wanted[task]) for task in self._outcomes)

    @property
    def items(self) -> list[Item]:
        """The items that are there so far."""
        return [item for item, reason in self._known() if not reason]

    @property
    def missing(self) -> list[Outcome]:
        """Items of evaluated tasks that are not used, each with the reason."""
        return [(item, reason) for item, reason in self._known() if reason]

    def _known(self) -> Iterator[Outcome]:
        for task in self._wanted:
            if task in self._evaluated:
                yield from self._outcomes.get(task, ())

    def wait_for_items(self) -> list[Item]:
        """Return the evaluation items, after waiting for them without an event loop."""
        for task in self._evaluated:
            if task not in self._outcomes:
                run_blocking(functools.partial(self._check, task), self._pool)
        return self.items

    def drop(self) -> None:
        """Forget the evaluation items: others are evaluated."""
        self._evaluated = ()

    def stop(self) -> None:
        """Give up the checks that are not done."""
        for check in self._checks.values():
            check.cancel()

    async def checked(self, task: str) -> None:
        """Wait until a task is checked; the first call begins the check."""
        if task in self._outcomes:
            return
        if task not in self._checks:
            self._checks[task] = asyncio.create_task(self._check(task, self._pool))
        # This caller may be cancelled while others wait for the same check.
        await asyncio.shield(self._checks[task])

    async def check_all(
        self, on_done: Callable[[int], object] = lambda number: None
    ) -> list[Item]:
        """Check all tasks and return the evaluation items.

        Args:
            on_done: Called with the number of items that have just become `done`.

        Raises:
            LibraryError: No chosen task can make an item.
        """
        rest = [task for task in self._wanted if task not in self._outcomes]
        places = asyncio.Semaphore(self._settings.worker_count)

        async def checked(task: str) -> None:
            async with places:
                await self.checked(task)
            on_done(len(self._wanted[task]))

        await asyncio.gather(*map(checked, rest))
        if self._wanted.keys() <= self.left_out.keys():
            why = "no chosen task can make an item; the log names each with its reason"
            raise LibraryError(why)
        if rest:
            missing = dict(Counter(item.task for item, _ in self.missing))
            logger.info(
                "checked %s, made %s%s",
                counted(len(self._wanted), "task"),
                counted(len(self.items), "item"),
                f", missing {missing}" if missing else "",
            )
        return self.items

    async def _check(self, task: str, pool: WorkerPool) -> None:
        wanted = self._wanted[task]
        outcomes: list[Outcome] = []
        fault: str | None = None
        for attempts in wanted:
            try:
                item = await self._maker.make_first_usable(pool, attempts)
                outcomes.append((item, ""))
            except PoolClosedError:
                raise
            except PoolError as error:
                reason = error.message if is_unusable(error) else str(error)
                outcomes.append((attempts[0], reason))
                # Lost workers say nothing of a task of the library: the machine failed.
                is_of_machine = isinstance(error, WorkerLostError) and task in TASKS
                fault = None if is_of_machine else reason
        made = [item for item, reason in outcomes if not reason]
        if made:
            one = made[0]
            fault = await gold_fault(
                pool,
                one.task,
                one.params,
                one.entry,
                rules=one.rules,
                deadline_s=one.deadline_s,
            )
        if task in self._outcomes:  # meanwhile, by `wait_for_items` or before it
            return
        if fault is not None:
            logger.warning("task %s is left out: %s", task, fault)
            self.left_out[task] = fault
            outcomes = [(attempts[0], fault) for attempts in wanted]
        elif task in self._evaluated:
            self.questions.update(item.question for item in made)
        self._outcomes[task] = outcomes
