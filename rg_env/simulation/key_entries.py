"""The environment's own item streams, as entries of the simulated policy's answer key.

Items are a pure function of seed, split and index, so drawing the same stream gives
the same questions. Where results move the levels, an entry is made for every step that
a draw may have fallen on.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rg_env.items import worker_jobs
from rg_env.items.item_source import ItemSource, NoItems
from rg_env.pool.pool_errors import PoolError
from rg_env.pool.worker_pool import WorkerPool
from rg_env.simulation.policy import KeyEntry
from rg_env.tasks.difficulty import Difficulty
from rg_env.tasks.item_stream import ItemStream, evaluation_specs
from rg_env.tasks.library import LibraryDescription
from rg_env.tasks.sampler import Sampler
from rg_env.tasks.selection import TaskChoice
from rg_env.tasks.solutions import solution

AHEAD = 8
DEADLINE_S = 30.0
UNSOLVED = "no solution known"
"""What the simulated policy says where an entry holds no answer; it is wrong."""


@dataclasses.dataclass(frozen=True)
class Run:
    """The environment's settings that decide its items.

    Attributes:
        library: What is installed.
        choices: The chosen tasks.
        difficulty: The levels; None for the library's defaults.
        seed: The environment's `seed`.
        eval_seed: Its `eval_seed`.
        samples_per_task: Its `num_eval_samples_per_task`.
    """

    library: LibraryDescription
    choices: Sequence[TaskChoice]
    difficulty: Difficulty | None
    seed: int
    eval_seed: int
    samples_per_task: int

    @property
    def every_step(self) -> bool:
        """Whether a draw may be of any step, because results move the levels."""
        difficulty = self.difficulty
        return difficulty is not None and any(
            map(difficulty.follows_results, difficulty.rules)
        )

    def build_stream(self) -> ItemStream:
        """Return what the environment draws, from the beginning."""
        sampler = Sampler([choice.weight for choice in self.choices], self.seed)
        return ItemStream(sampler, self.choices, self.difficulty)

    def build_entry(
        self, task: str, level: float | None, entry: Mapping[str, Any]
    ) -> KeyEntry:
        """Return what the policy has to know of an entry of the library."""
        return KeyEntry(
            task=task,
            category=self.library.tasks[task].category,
            question=entry["question"],
            answer=solution(task, entry) or UNSOLVED,
            level=level,
        )


@dataclasses.dataclass(frozen=True)
class _Wanted:
    """An entry to make."""

    task: str
    level: float | None
    params: Mapping[str, Any]
    seed: int


async def asked_entries(run: Run, source: ItemSource) -> AsyncIterator[KeyEntry]:
    """Yield what an environment asks whose results move no level, without end.

    Args:
        run: Its settings.
        source: Its items, from `run.build_stream()`.
    """
    with contextlib.suppress(NoItems):
        while True:
            made = await source.next_item()
            yield run.build_entry(made.handle.task, made.handle.level, made.entry)


def entries_of_every_step(pool: WorkerPool, run: Run) -> AsyncIterator[KeyEntry]:
    """Yield what an environment may ask whose results move levels, without end."""
    return _make_ahead(pool, run, _wanted_of_every_step(run))


def eval_entries(pool: WorkerPool, run: Run) -> AsyncIterator[KeyEntry]:
    """Yield the evaluation items of a run."""
    specs = evaluation_specs(
        run.choices, run.samples_per_task, run.eval_seed, run.difficulty
    )
    return _make_ahead(
        pool, run, (_Wanted(s.task, s.level, s.params, s.seed) for s in specs)
    )


def _wanted_of_every_step(run: Run) -> Iterator[_Wanted]:
    stream = run.build_stream()
    while True:
        spec = stream.next_spec()
        seed = stream.seed_of(spec)
        if run.difficulty is None or not run.difficulty.follows_results(spec.task):
            yield _Wanted(spec.task, spec.level, stream.params_of(spec), seed)
            continue
        scale = run.difficulty.scales[spec.task]
        own = run.choices[spec.choice].params
        for number, step in enumerate(scale.steps):
            params = {**step.params, **own}
            yield _Wanted(spec.task, scale.level_of(number), params, seed)


async def _make_ahead(
    pool: WorkerPool, run: Run, wanted: Iterable[_Wanted]
) -> AsyncIterator[KeyEntry]:
    """Yield entries in order, a few made ahead; failed ones are left out."""
    coming = iter(wanted)
    ahead = deque[tuple[_Wanted, "asyncio.Future[dict[str, Any]]"]]()
    while True:
        for one in itertools.islice(coming, AHEAD - len(ahead)):
            job = pool.run(
                worker_jobs.make_entry,
                one.task,
                dict(one.params),
                one.seed,
                deadline_s=DEADLINE_S,
            )
            ahead.append((one, asyncio.ensure_future(job)))
        if not ahead:
            return
        one, making = ahead.popleft()
        with contextlib.suppress(PoolError):
            yield run.build_entry(one.task, one.level, await making)
