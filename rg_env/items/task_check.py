"""Whether a task works on this installation: items, gold answers, controls, transport.

`check_task` is the whole check, of `doctor`; `gold_fault` the quick part of it, which
`serve` makes of every task before it starts.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import logging
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from rg_env.items import worker_jobs
from rg_env.items.item import Item, is_unusable, why_no_entry
from rg_env.scoring.scoring_rules import ScoringRules
from rg_env.task_rules.rules import Entry
from rg_env.tasks.datasets import scoring_dataset
from rg_env.tasks.library import OWN_CATEGORY, TASKS, TaskInfo
from rg_env.tasks.sampler import MAX_ATTEMPTS, entry_seed
from rg_env.workers.pool_errors import JobError, PoolError, WorkerLostError
from rg_env.workers.worker_pool import Trust, WorkerPool

logger = logging.getLogger(__name__)

DEADLINE_S = 20.0
CONTROLS = ("...", "nan", "I do not know", "0", "[]", "None")
"""Answers that solve nothing; what any of them scores is chance."""

MOST_FOR_NOTHING = 0.5
"""What a wrong constant may score on average at most."""


async def _timed(pool: WorkerPool, job: Any, *args: Any) -> tuple[float, Any]:
    """Return the milliseconds that a job takes in a worker, and its result."""
    return await pool.run(worker_jobs.timed, job, *args, deadline_s=DEADLINE_S)


async def _make_items(
    pool: WorkerPool,
    task: str,
    params: Mapping[str, Any],
    stream: str,
    count: int,
    checked: bool,
) -> list[tuple[float, dict[str, Any]]]:
    """Make up to `count` items with their milliseconds; faulty ones are passed over.

    `stream` names the seeds. Raises PoolError if an item cannot be made, or none of
    those made can be used.
    """
    items: list[tuple[float, dict[str, Any]]] = []
    tries = MAX_ATTEMPTS * count
    for number in range(tries):
        seed = entry_seed("evaluation", f"{stream}/{task}", number)
        call = (worker_jobs.make_entry, task, dict(params), seed, checked)
        try:
            items.append(await _timed(pool, *call))
        except JobError as error:
            if not is_unusable(error) or (number + 1 == tries and not items):
                raise
        if len(items) == count:
            break
    return items


async def gold_fault(pool: WorkerPool, handle: Item, entry: Entry) -> str | None:
    """Return what is wrong with the score of an entry's gold answer, None if nothing.

    A task whose entries hold no answer passes, and so does a task of the library if the
    workers are lost: its scorer does not wait, so the machine has failed.
    """
    task, params = handle.task, dict(handle.params)
    prepared = Trust(prepare=functools.partial(scoring_dataset, task, params))
    how = (worker_jobs.reference_fault, task, params, entry, handle.rules)
    try:
        return await pool.run(*how, deadline_s=handle.deadline_s, trust=prepared)
    except PoolError as error:
        if isinstance(error, WorkerLostError) and task in TASKS:
            logger.warning("task %s is not checked: %s", task, error)
            return None
        return f"its reference answer cannot be scored: {error}"


async def item_fault(
    pool: WorkerPool, handle: Item, stream: str, checked: bool = True
) -> str | None:
    """Return what is wrong with an item of a task, or with the score of its answer.

    `stream` names the seeds, `checked` is that of `make_entry`.
    """
    how = (handle.task, handle.params, stream, 1, checked)
    try:
        ((_, entry),) = await _make_items(pool, *how)
        return await gold_fault(pool, handle, entry)
    except PoolError as error:
        return why_no_entry(error)


# -- the whole check -------------------------------------------------------------------


@dataclasses.dataclass
class TaskFindings:
    """What is wrong with one task, what is worth knowing, and median times."""

    task: str
    category: str
    faults: list[str] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)
    make_ms: float | None = None
    score_ms: float | None = None

    @property
    def has_passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults


async def check_task(
    pool: WorkerPool, other: WorkerPool, info: TaskInfo, fixes: bool, num_items: int
) -> TaskFindings:
    """Check a task; if a check cannot be made, that is a finding too.

    Items are made again, and scored, by `other`, whose processes were started apart;
    `fixes` says whether the corrections of the library's scorers are on.
    """
    handle = Item(info.name, rules=ScoringRules(scorer_fixes=fixes))
    findings = TaskFindings(info.name, info.category)
    try:
        how: tuple[Any, ...] = (info.name, {}, "doctor", num_items, fixes)
        items = await _make_items(pool, *how)
        findings.make_ms = statistics.median(ms for ms, _ in items)
        entries = [entry for _, entry in items]
        again = [entry for _, entry in await _make_items(other, *how)]
        differing = sum(
            (a["question"], a["answer"]) != (b["question"], b["answer"])
            for a, b in zip(entries, again, strict=True)
        )
        if differing:
            findings.faults = [f"items that differ in another process: {differing}"]
        places = (("", pool), ("in another process, ", other))
        for entry, (where, workers) in itertools.product(entries, places):
            fault = await gold_fault(workers, handle, entry)
            if fault is not None:
                findings.faults.append(f"{where}{fault}")
                break
        if not findings.faults:
            await _check_controls(pool, handle, entries, findings)
        if info.category == OWN_CATEGORY:
            await _check_levels(pool, handle, findings)
    except PoolError as error:
        findings.faults.append(str(error))
    return findings


async def _check_controls(
    pool: WorkerPool,
    handle: Item,
    entries: Sequence[Entry],
    findings: TaskFindings,
) -> None:
    """Find the constants that score although they are not the answer."""
    scores: dict[str, list[float]] = defaultdict(list)
    times_ms = []
    how = handle.task, dict(handle.params)
    for entry in entries:
        job: Any = worker_jobs.solution_of
        gold = await pool.run(job, handle.task, entry, deadline_s=DEADLINE_S)
        job = worker_jobs.score_answers
        if gold is not None:
            took_ms, _ = await _timed(pool, job, *how, entry, [gold], handle.rules)
            times_ms.append(took_ms)
        _, rows = await _timed(pool, job, *how, entry, CONTROLS, handle.rules)
        for control, (value, *_) in zip(CONTROLS, rows, strict=True):
            if not _is_same(control, gold):
                scores[control].append(value)
    if times_ms:
        findings.score_ms = statistics.median(times_ms)
    else:
        findings.notes.append("no reference answer to check the scorer with")
    findings.faults += [
        f"{control!r} scores {statistics.fmean(values):.2f}"
        for control, values in scores.items()
        if statistics.fmean(values) > MOST_FOR_NOTHING
    ]


def _is_same(control: str, gold: str | None) -> bool:
    """Say whether a constant is the gold answer, as text or as a number."""
    try:
        return control == gold or float(control) == float(gold or "")
    except ValueError:
        return False


async def _check_levels(pool: WorkerPool, handle: Item, findings: TaskFindings) -> None:
    """Make an item of every step of a user's own scale, and score its answer."""
    job: Any = worker_jobs.own_scale
    scale = await pool.run(job, handle.task, deadline_s=DEADLINE_S)
    if isinstance(scale, str):
        return
    findings.notes += [f"level {skip.level}: {skip.reason}" for skip in scale.skipped]
    findings.notes += [scale.note] if scale.note else []
    for step in scale.steps:
        of_step = dataclasses.replace(handle, params=step.params)
        checked = handle.rules.scorer_fixes
        fault = await item_fault(pool, of_step, "doctor", checked)
        if fault is not None:
            findings.faults.append(f"level {step.levels[0]}: {fault}")
