"""The trial of a task: whether its items are made and its reference answers score 1.0.

`check_task` is the whole of it, of `doctor`; `gold_fault` the quick part, which a run
makes of every task before it is sampled.
"""

from __future__ import annotations

import functools
import logging
import random
from collections.abc import Mapping
from typing import Any, TypeGuard

from rg_env.library import worker_jobs
from rg_env.library.datasets import (
    ANSWER_DEADLINE_S,
    UnusableEntryError,
    scoring_dataset,
)
from rg_env.library.registry import TASKS
from rg_env.reward.score import DEFAULT_RULES, ScoringRules
from rg_env.task_rules.rules import Entry
from rg_env.workers.pool_errors import (
    DeadlineExceededError,
    JobError,
    PoolError,
    WorkerLostError,
)
from rg_env.workers.worker_pool import Trust, WorkerPool

logger = logging.getLogger(__name__)

DEADLINE_S = 20.0
MOST_TRIES = 32  # for one entry that can be used


def is_unusable(error: BaseException | None) -> TypeGuard[JobError]:
    """Return whether the library made an entry that must not be used."""
    return isinstance(error, JobError) and error.is_a(UnusableEntryError)


def why_no_entry(error: PoolError) -> str:
    """Return why an entry was not made, on one line."""
    if isinstance(error, DeadlineExceededError):
        return f"its item was {error}"
    if not isinstance(error, JobError):
        return str(error)
    if error.is_a(MemoryError):
        return "its item takes more memory than a worker may have"
    return error.message.partition("\n")[0] or error.kind


async def _make_entries(
    pool: WorkerPool, task: str, params: Mapping[str, Any], count: int
) -> list[Entry]:
    """Make up to `count` entries; faulty ones are passed over, unless all are."""
    entries: list[Entry] = []
    seeds = random.Random(task)
    tries = MOST_TRIES * count
    for number in range(tries):
        seed = seeds.getrandbits(32)
        call = (worker_jobs.make_entry, task, dict(params), seed)
        try:
            entries.append(await pool.run(*call, deadline_s=DEADLINE_S))
        except JobError as error:
            if not is_unusable(error) or (number + 1 == tries and not entries):
                raise
        if len(entries) == count:
            break
    return entries


async def gold_fault(
    pool: WorkerPool,
    task: str,
    params: Mapping[str, Any],
    entry: Entry,
    rules: ScoringRules = DEFAULT_RULES,
    deadline_s: float = ANSWER_DEADLINE_S,
) -> str | None:
    """Return what is wrong with the score of an entry's gold answer, None if nothing.

    A task whose entries hold no answer passes, and so does a task of the library if the
    workers are lost: its scorer does not wait, so the machine has failed.
    """
    prepared = Trust(prepare=functools.partial(scoring_dataset, task, dict(params)))
    how = (worker_jobs.reference_fault, task, dict(params), entry, rules)
    try:
        return await pool.run(*how, deadline_s=deadline_s, trust=prepared)
    except PoolError as error:
        if isinstance(error, WorkerLostError) and task in TASKS:
            logger.warning("task %s is not checked: %s", task, error)
            return None
        return f"its reference answer cannot be scored: {error}"


async def item_fault(
    pool: WorkerPool, task: str, params: Mapping[str, Any]
) -> str | None:
    """Return what is wrong with an item of a task, or with the score of its answer."""
    try:
        (entry,) = await _make_entries(pool, task, params, 1)
    except PoolError as error:
        return why_no_entry(error)
    return await gold_fault(pool, task, params, entry)


async def check_task(
    pool: WorkerPool, other: WorkerPool, task: str, num_items: int
) -> str | None:
    """Return what is wrong with a task, None if nothing.

    Items are made again by `other`, whose processes were started apart.
    """
    try:
        entries = await _make_entries(pool, task, {}, num_items)
        if entries != await _make_entries(other, task, {}, num_items):
            return "another process makes other items"
        for entry in entries:
            if fault := await gold_fault(pool, task, {}, entry):
                return fault
    except PoolError as error:
        return str(error)
    return None
