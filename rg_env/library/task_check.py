"""Checks a task: can its items be made, and do its reference answers score 1.0?

A run checks every task with `gold_fault` before it samples the task. `Tasks` does so by
`item_fault`, which makes the item, and `doctor` by `check_task`, which makes several
items in two pools.
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
    MAKING_DEADLINE_S,
    UnusableEntryError,
    scoring_dataset,
)
from rg_env.library.registry import TASKS
from rg_env.reward.score import DEFAULT_RULES, ScoringRules
from rg_env.task_rules.rules import Entry
from rg_env.workers.call import (
    CallOptions,
    DeadlineExceededError,
    JobError,
    PoolError,
    WorkerLostError,
)
from rg_env.workers.worker_pool import WorkerPool

logger = logging.getLogger(__name__)

MAX_TRIES = 32  # for one usable entry


def is_unusable(error: BaseException | None) -> TypeGuard[JobError]:
    """Return whether an error says that an entry must not be used."""
    return isinstance(error, JobError) and error.is_a(UnusableEntryError)


def why_no_entry(error: PoolError) -> str:
    """Return why an entry was not made, on one line."""
    if isinstance(error, DeadlineExceededError):
        return f"its item was {error}"
    if not isinstance(error, JobError):
        return str(error)
    if error.is_a(MemoryError):
        return "its item takes more memory than a worker may have"
    return error.message.partition("\n")[0] or error.class_name


async def _make_entries(
    pool: WorkerPool, task: str, params: Mapping[str, Any], count: int
) -> list[Entry]:
    """Make up to `count` entries; faulty ones are skipped, unless all are faulty."""
    entries: list[Entry] = []
    seeds = random.Random(task)
    tries = MAX_TRIES * count
    for attempt in range(1, tries + 1):
        seed = seeds.getrandbits(32)
        try:
            entry = await pool.run(
                worker_jobs.make_entry,
                task,
                dict(params),
                seed,
                deadline_s=MAKING_DEADLINE_S,
            )
            entries.append(entry)
        except JobError as error:
            if not is_unusable(error) or (attempt == tries and not entries):
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
    """Return the fault in the score of an entry's reference answer, None if it is 1.0.

    A task without reference answers passes. A task of the library passes if workers are
    lost: its scorer does not wait, so the machine has failed.
    """
    plain = dict(params)
    options = CallOptions(prepare=functools.partial(scoring_dataset, task, plain))
    job = worker_jobs.reference_fault
    try:
        return await pool.run(
            job, task, plain, entry, rules, deadline_s=deadline_s, options=options
        )
    except PoolError as error:
        if isinstance(error, WorkerLostError) and task in TASKS:
            logger.warning("task %s is not checked: %s", task, error)
            return None
        return f"its reference answer cannot be scored: {error}"


async def item_fault(
    pool: WorkerPool, task: str, params: Mapping[str, Any]
) -> str | None:
    """Return the fault of an item of a task or of its reference answer, if any."""
    try:
        (entry,) = await _make_entries(pool, task, params, count=1)
    except PoolError as error:
        return why_no_entry(error)
    return await gold_fault(pool, task, params, entry)


async def check_task(
    pool: WorkerPool, other_pool: WorkerPool, task: str, num_items: int
) -> str | None:
    """Return the fault of a task, None if it has none.

    `other_pool` has other processes, which must make the same items.
    """
    try:
        entries = await _make_entries(pool, task, {}, num_items)
        if entries != await _make_entries(other_pool, task, {}, num_items):
            return "another process makes different items"
        for entry in entries:
            if fault := await gold_fault(pool, task, {}, entry):
                return fault
    except PoolError as error:
        return str(error)
    return None
