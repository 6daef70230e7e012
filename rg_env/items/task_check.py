"""Whether a task works on this installation: items, gold answers, controls, transport.

`TaskCheck` is the whole check, of `doctor`; `gold_fault` the quick part of it, which
`serve` makes of every task before it starts.
"""

from __future__ import annotations

import dataclasses
import logging
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from rg_env.items import worker_jobs
from rg_env.items.group_scorer import GroupScorer, ScoringUnavailableError
from rg_env.items.item import Item, is_unusable, why_no_entry
from rg_env.scoring.score import Score, read_rows
from rg_env.scoring.scoring_rules import ScoringRules
from rg_env.task_rules.rules import Entry
from rg_env.task_rules.table import solution
from rg_env.tasks import own_tasks
from rg_env.tasks.library_import import TASKS
from rg_env.tasks.sampler import MAX_ATTEMPTS, entry_seed
from rg_env.workers.pool_errors import JobError, PoolError, WorkerLostError
from rg_env.workers.worker_pool import WorkerPool

logger = logging.getLogger(__name__)

DEADLINE_S = 20.0
CONTROLS = ("...", "nan", "I do not know", "0", "[]", "None")
"""Answers that solve nothing; what any of them scores is chance."""

MOST_FOR_NOTHING = 0.5
"""What a wrong constant may score on average at most."""


def _is_same(control: str, gold: str | None) -> bool:
    """Say whether a constant is the gold answer, as text or as a number."""
    if gold is None:
        return False
    try:
        return control == gold or float(control) == float(gold)
    except ValueError:
        return False


async def make_items(
    pool: WorkerPool,
    task: str,
    params: Mapping[str, Any],
    stream: str,
    count: int,
    checked: bool = True,
) -> list[tuple[float, dict[str, Any]]]:
    """Make up to `count` items with their milliseconds; faulty ones are passed over.

    `stream` names the seeds, `checked` is that of `library.make_entry`.

    Raises:
        PoolError: An item cannot be made, or none of those made can be used.
    """
    made: list[tuple[float, dict[str, Any]]] = []
    tries = MAX_ATTEMPTS * count
    for number in range(tries):
        seed = entry_seed("evaluation", f"{stream}/{task}", number)
        call = (worker_jobs.make_entry, task, dict(params), seed, checked)
        try:
            made.append(await pool.run(worker_jobs.timed, *call, deadline_s=DEADLINE_S))
        except JobError as error:
            if not is_unusable(error) or (number + 1 == tries and not made):
                raise
        if len(made) == count:
            break
    return made


async def _solution(pool: WorkerPool, task: str, entry: Entry) -> str | None:
    """Return an answer that scores 1.0; the rules of a user's tasks are in workers."""
    if task in TASKS:
        return solution(task, entry)
    job = worker_jobs.solution_of
    return await pool.run(job, task, entry, deadline_s=DEADLINE_S)


async def _scores(
    pool: WorkerPool, handle: Item, entry: Entry, answers: Sequence[str]
) -> tuple[float, list[Score]]:
    """Return the time in milliseconds, and the scores."""
    how = (handle.task, dict(handle.params), entry, answers, handle.rules)
    call: tuple[Any, ...] = (worker_jobs.score_answers, *how)
    took_ms, rows = await pool.run(worker_jobs.timed, *call, deadline_s=DEADLINE_S)
    return took_ms, read_rows(answers, rows)


async def gold_fault(pool: WorkerPool, handle: Item, entry: Entry) -> str | None:
    """Return what is wrong with the score of an entry's gold answer, None if nothing.

    A task whose entries hold no answer cannot be judged by this and passes, and so does
    a task of the library if the workers give no score: its scorer does not wait, so the
    machine has failed.
    """
    task, why = handle.task, ""
    try:
        gold = await _solution(pool, task, entry)
        if gold is None:
            return None
        scorer = GroupScorer(pool, handle.deadline_s, handle.rules)
        (score,) = await scorer.score_group(handle, entry, [gold])
        is_own = task not in TASKS and score.outcome != "timeout"
        if is_own or score.outcome == "scorer_error":
            call = (task, dict(handle.params), gold, entry, handle.rules)
            job = worker_jobs.reference_fault
            why = await pool.run(job, *call, deadline_s=DEADLINE_S)
    except (ScoringUnavailableError, WorkerLostError) as error:
        if task in TASKS:
            logger.warning("task %s is not checked: %s", task, error)
            return None
        return f"its reference answer cannot be scored: {error}"
    except PoolError as error:
        return f"its reference answer cannot be scored: {error}"
    if score.value == 1.0:
        return f"its RULES fail on its reference answer ({why})" if why else None
    why = why or score.outcome
    return f"its reference answer scores {score.value:.2f} ({why})"


async def item_fault(
    pool: WorkerPool, handle: Item, stream: str, checked: bool = True
) -> str | None:
    """Return what is wrong with an item of a task, or with the score of its answer.

    `stream` and `checked` are those of `make_items`.
    """
    how: tuple[Any, ...] = (handle.task, handle.params, stream, 1, checked)
    try:
        ((_, entry),) = await make_items(pool, *how)
        return await gold_fault(pool, handle, entry)
    except PoolError as error:
        return why_no_entry(error)


@dataclasses.dataclass(frozen=True)
class TaskFindings:
    """What is wrong with one task, what is worth knowing, and median times."""

    task: str
    category: str
    faults: Sequence[str]
    notes: Sequence[str]
    make_ms: float | None
    score_ms: float | None

    @property
    def has_passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults


@dataclasses.dataclass(frozen=True)
class TaskCheck:
    """The whole check of one task.

    Items are made again, and scored, by `other`, whose processes were started apart;
    `fixes` says whether the corrections of the library's scorers are on.
    """

    pool: WorkerPool
    other: WorkerPool
    fixes: bool
    num_items: int

    async def run(self, task: str, category: str) -> TaskFindings:
        """Check a task; if a check cannot be made, that is a finding too."""
        faults: list[str] = []
        notes: list[str] = []
        make_ms: list[float] = []
        score_ms: list[float] = []
        handle = Item(task, rules=ScoringRules(scorer_fixes=self.fixes))
        try:
            how: tuple[Any, ...] = (task, {}, "doctor", self.num_items, self.fixes)
            made = await make_items(self.pool, *how)
            make_ms = [took_ms for took_ms, _ in made]
            entries = [entry for _, entry in made]
            again = [entry for _, entry in await make_items(self.other, *how)]
            faults += self._repeat_faults(entries, again)
            golds = [await _solution(self.pool, task, entry) for entry in entries]
            empty = sum(gold is not None and not gold.strip() for gold in golds)
            if empty and category == own_tasks.CATEGORY:
                many = f"reference answers that are empty: {empty} of {len(golds)}"
                (faults if empty == len(golds) else notes).append(many)
            if None in golds:
                notes.append("no reference answer to check the scorer with")
            faults += await self._gold_faults(handle, entries)
            if not faults:
                rows = list(zip(entries, golds, strict=True))
                score_ms += [
                    (await _scores(self.pool, handle, entry, [gold]))[0]
                    for entry, gold in rows
                    if gold is not None
                ]
                faults += await self._control_faults(handle, rows)
        except PoolError as error:
            faults.append(str(error))
        if max(score_ms, default=0.0) > 1000 * handle.deadline_s:
            notes.append(
                f"scoring takes {max(score_ms) / 1000:.0f} s;"
                f" scoring_deadline_s is {handle.deadline_s:g} s of CPU time"
            )
        if category == own_tasks.CATEGORY:
            faults += await self._level_faults(handle, notes)
        times = (statistics.median(ms) if ms else None for ms in (make_ms, score_ms))
        return TaskFindings(task, category, faults, notes, *times)

    @staticmethod
    def _repeat_faults(entries: Sequence[Entry], again: Sequence[Entry]) -> list[str]:
        differing = sum(
            (a["question"], a["answer"]) != (b["question"], b["answer"])
            for a, b in zip(entries, again, strict=True)
        )
        return (
            [f"items that differ in another process: {differing}"] if differing else []
        )

    async def _gold_faults(self, handle: Item, entries: Sequence[Entry]) -> list[str]:
        """Score gold answers where the entry was made, and in another process."""
        for entry in entries:
            here = await gold_fault(self.pool, handle, entry)
            if here is not None:
                return [here]
            there = await gold_fault(self.other, handle, entry)
            if there is not None:
                return [f"in another process, {there}"]
        return []

    async def _control_faults(
        self, handle: Item, rows: Sequence[tuple[Entry, str | None]]
    ) -> list[str]:
        """Return the constants that score although they are not the answer."""
        scored: dict[str, list[float]] = {control: [] for control in CONTROLS}
        for entry, gold in rows:
            _, scores = await _scores(self.pool, handle, entry, CONTROLS)
            for control, score in zip(CONTROLS, scores, strict=True):
                if not _is_same(control, gold):
                    scored[control].append(score.value)
        return [
            f"{control!r} scores {statistics.fmean(values):.2f}"
            for control, values in scored.items()
            if values and statistics.fmean(values) > MOST_FOR_NOTHING
        ]

    async def _level_faults(self, handle: Item, notes: list[str]) -> list[str]:
        """Make an item of every step of a user's own scale, and score its answer."""
        task = handle.task
        try:
            job = worker_jobs.own_scale
            scale = await self.pool.run(job, task, deadline_s=DEADLINE_S)
        except PoolError as error:
            return [f"its curriculum fails: {error}"]
        if isinstance(scale, str):
            return []
        notes += [f"level {skip.level}: {skip.reason}" for skip in scale.skipped]
        notes += [scale.note] if scale.note else []
        faults = []
        for step in scale.steps:
            of_step = dataclasses.replace(handle, params=step.params)
            fault = await item_fault(self.pool, of_step, "doctor", self.fixes)
            if fault is not None:
                faults.append(f"level {step.levels[0]}: {fault}")
        return faults
