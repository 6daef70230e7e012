"""The environment's own item streams, as entries of the simulated policy's answer key.

Items are a pure function of seed, split and index, so drawing the same stream gives
the same questions. Where results move the levels, nobody knows which of its questions
a draw asked: an entry is made for every step that it may have fallen on, and for every
attempt that the environment may have come to because the one before it is a question
that it does not ask (see tasks/asked_questions.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
from collections import deque
from collections.abc import (
    AsyncIterator,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import Any

from rg_env.items import worker_jobs
from rg_env.items.entry_maker import is_unusable
from rg_env.items.item_source import ItemSource, NoItems
from rg_env.pool.pool_errors import PoolError
from rg_env.pool.worker_pool import WorkerPool
from rg_env.simulation.policy import KeyEntry
from rg_env.tasks.asked_questions import REMEMBERED, AskedQuestions
from rg_env.tasks.difficulty import Difficulty
from rg_env.tasks.item_stream import ItemStream, evaluation_specs
from rg_env.tasks.library import LibraryDescription
from rg_env.tasks.sampler import MAX_ATTEMPTS, Sampler
from rg_env.tasks.selection import TaskChoice
from rg_env.tasks.solutions import solution

AHEAD = 8
DEADLINE_S = 60.0
"""Longer than an environment waits: what it has asked, the key has to have made."""
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
    """A question that a draw may have asked.

    Attributes:
        draw: The number of the draw, from 0.
        task: Its task.
        level: In [0, 1], None for the library's defaults.
        attempts: Dataset parameters and seed of each attempt at it, at least one.
    """

    draw: int
    task: str
    level: float | None
    attempts: Sequence[tuple[Mapping[str, Any], int]]


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


async def entries_of_every_step(
    pool: WorkerPool, run: Run, evaluated: Collection[str]
) -> AsyncIterator[KeyEntry]:
    """Yield what an environment may ask whose results move levels, without end.

    Args:
        pool: Makes the entries.
        run: The environment's settings.
        evaluated: The questions of its evaluation, which it does not ask.
    """
    # As many as the environment remembers, of every step and attempt.
    met = AskedQuestions(REMEMBERED * MAX_ATTEMPTS * _longest_scale(run))
    draw, asked_by_draw = -1, list[KeyEntry]()
    async for wanted, making in _begun_ahead(pool, _wanted_of_every_step(run)):
        if wanted.draw != draw:
            for entry in asked_by_draw:
                met.add(entry.task, entry.question)
            draw, asked_by_draw = wanted.draw, []
        for attempt, _ in enumerate(wanted.attempts):
            try:
                made = await (making if attempt == 0 else _begin(pool, wanted, attempt))
            except PoolError as error:
                if is_unusable(error):
                    continue
                break
            entry = run.build_entry(wanted.task, wanted.level, made)
            asked_by_draw.append(entry)
            yield entry
            question = entry.question
            if question not in evaluated and not met.has(wanted.task, question):
                break


async def eval_entries(pool: WorkerPool, run: Run) -> AsyncIterator[KeyEntry]:
    """Yield the evaluation items of a run; those that fail are left out."""
    specs = evaluation_specs(
        run.choices, run.samples_per_task, run.eval_seed, run.difficulty
    )
    wanted_ones = (
        _Wanted(
            number,
            spec.task,
            spec.level,
            [(each.params, each.seed) for each in (spec, *spec.others)],
        )
        for number, spec in enumerate(specs)
    )
    async for wanted, making in _begun_ahead(pool, wanted_ones):
        for attempt, _ in enumerate(wanted.attempts):
            try:
                made = await (making if attempt == 0 else _begin(pool, wanted, attempt))
            except PoolError as error:
                if is_unusable(error):
                    continue
                break
            yield run.build_entry(wanted.task, wanted.level, made)
            break


def _longest_scale(run: Run) -> int:
    scales = {} if run.difficulty is None else run.difficulty.scales
    return max((len(scale.steps) for scale in scales.values()), default=1)


def _wanted_of_every_step(run: Run) -> Iterator[_Wanted]:
    stream = run.build_stream()
    attempts = range(MAX_ATTEMPTS)
    while True:
        spec = stream.next_spec()
        draw, task = spec.position, spec.task
        seeds = [stream.seed_of(spec, attempt) for attempt in attempts]
        if run.difficulty is None or not run.difficulty.follows_results(task):
            of_attempts = [stream.params_of(spec, attempt) for attempt in attempts]
            tries = list(zip(of_attempts, seeds, strict=True))
            yield _Wanted(draw, task, spec.level, tries)
            continue
        scale = run.difficulty.scales[task]
        own = run.choices[spec.choice].params
        for number, step in enumerate(scale.steps):
            params = {**step.params, **own}
            level = scale.level_of(number)
            yield _Wanted(draw, task, level, [(params, seed) for seed in seeds])


def _begin(
    pool: WorkerPool, wanted: _Wanted, attempt: int
) -> asyncio.Future[dict[str, Any]]:
    params, seed = wanted.attempts[attempt]
    job = pool.run(
        worker_jobs.make_entry, wanted.task, dict(params), seed, deadline_s=DEADLINE_S
    )
    return asyncio.ensure_future(job)


async def _begun_ahead(
    pool: WorkerPool, wanted: Iterable[_Wanted]
) -> AsyncIterator[tuple[_Wanted, asyncio.Future[dict[str, Any]]]]:
    """Yield what is wanted, in order, with its first attempt to come."""
    coming = iter(wanted)
    ahead = deque[tuple[_Wanted, "asyncio.Future[dict[str, Any]]"]]()
    while True:
        for one in itertools.islice(coming, AHEAD - len(ahead)):
            ahead.append((one, _begin(pool, one, 0)))
        if not ahead:
            return
        yield ahead.popleft()
