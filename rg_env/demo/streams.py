"""The environment's own item streams, as entries of the simulated policy's answer key.

Items are a pure function of seed, split and index, so drawing the same stream gives
the same questions. Entries are made in worker processes with the environment's hash
seed, a few ahead of what was asked for.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import Any

from rg_env.demo.policy import KeyEntry
from rg_env.isolation import jobs
from rg_env.isolation.errors import IsolationError
from rg_env.isolation.pool import WorkerPool
from rg_env.tasks.library import LibraryDescription
from rg_env.tasks.sampler import Sampler, evaluation_seed
from rg_env.tasks.selection import TaskChoice
from rg_env.tasks.solutions import solution

AHEAD = 8
DEADLINE_S = 30.0
UNSOLVED = "no solution known"
"""What the simulated policy says where an entry holds no answer; it is wrong."""

Making = tuple[TaskChoice, "Future[dict[str, Any]]"]


def _entries(
    pool: WorkerPool,
    library: LibraryDescription,
    draws: Iterator[tuple[TaskChoice, int]],
) -> Iterator[KeyEntry]:
    """Yield the entries of draws in order, made ahead; failed ones are left out."""
    ahead: deque[Making] = deque()
    while True:
        for choice, seed in itertools.islice(draws, AHEAD - len(ahead)):
            making = pool.submit(
                jobs.make_entry,
                choice.task,
                dict(choice.params),
                seed,
                deadline_s=DEADLINE_S,
            )
            ahead.append((choice, making))
        if not ahead:
            return
        choice, making = ahead.popleft()
        try:
            entry = making.result()
        except IsolationError:
            continue
        yield KeyEntry(
            task=choice.task,
            category=library.tasks[choice.task].category,
            question=entry["question"],
            answer=solution(choice.task, entry) or UNSOLVED,
            level=None,
        )


def train_entries(
    pool: WorkerPool,
    library: LibraryDescription,
    selection: Sequence[TaskChoice],
    seed: int,
) -> Iterator[KeyEntry]:
    """Yield the training stream of a run without end."""
    sampler = Sampler([choice.weight for choice in selection], seed)

    def draws() -> Iterator[tuple[TaskChoice, int]]:
        while True:
            draw = sampler.next_draw()
            yield selection[draw.choice], draw.seed

    return _entries(pool, library, draws())


def eval_entries(
    pool: WorkerPool,
    library: LibraryDescription,
    selection: Sequence[TaskChoice],
    eval_seed: int,
    samples_per_task: int,
) -> Iterator[KeyEntry]:
    """Yield the evaluation items of a run."""
    draws = (
        (choice, evaluation_seed(eval_seed, choice.task, choice.params, i))
        for choice in selection
        for i in range(samples_per_task)
    )
    return _entries(pool, library, draws)
