"""The environment's own item streams, as entries of the simulated policy's answer key.

Items are a pure function of seed, split and index, so drawing the same stream gives
the same questions. Where results move the levels that is not so: there the policy has
to be told what is asked, as the demo does.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import (
    AsyncIterator,
    Mapping,
    Sequence,
)
from typing import Any

from rg_env.demo.policy import KeyEntry
from rg_env.items import worker_jobs
from rg_env.items.entry_maker import is_unusable
from rg_env.items.item_source import ItemSource, NoItems
from rg_env.task_rules.table import solution
from rg_env.tasks.difficulty import Difficulty
from rg_env.tasks.item_stream import ItemStream, evaluation_specs
from rg_env.tasks.library import LibraryDescription
from rg_env.tasks.sampler import Sampler
from rg_env.tasks.selection import TaskChoice
from rg_env.workers.pool_errors import PoolError
from rg_env.workers.worker_pool import WorkerPool

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

    def build_stream(self) -> ItemStream:
        """Return what the environment draws, from the beginning."""
        sampler = Sampler([choice.weight for choice in self.choices], self.seed)
        return ItemStream(sampler, self.choices, self.difficulty)

    def build_entry(
        self, task: str, level: float | None, entry: Mapping[str, Any]
    ) -> KeyEntry:
        """Return what the policy has to know of an entry of the library."""
        return build_entry(task, self.library.tasks[task].category, level, entry)


def build_entry(
    task: str, category: str, level: float | None, entry: Mapping[str, Any]
) -> KeyEntry:
    """Return what the policy has to know of an entry of the library."""
    answer = solution(task, entry) or UNSOLVED
    return KeyEntry(task, category, entry["question"], answer, level)


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


async def eval_entries(pool: WorkerPool, run: Run) -> AsyncIterator[KeyEntry]:
    """Yield the evaluation items of a run; those that fail are left out."""
    specs = evaluation_specs(
        run.choices, run.samples_per_task, run.eval_seed, run.difficulty
    )
    for spec in specs:
        for one in (spec, *spec.others):
            call = (worker_jobs.make_entry, spec.task, dict(one.params), one.seed)
            try:
                made = await pool.run(*call, deadline_s=DEADLINE_S)
            except PoolError as error:
                if is_unusable(error):
                    continue
                break
            yield run.build_entry(spec.task, spec.level, made)
            break
