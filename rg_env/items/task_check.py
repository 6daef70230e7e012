"""Whether a task works on this installation: items, gold answers, controls, transport.

`TaskCheck` is the whole check, of `doctor`; `gold_fault` the quick part of it, which
`serve` makes of every task before it starts.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from rg_env.items import worker_jobs
from rg_env.items.entry_maker import is_unusable
from rg_env.items.group_scorer import scores_of
from rg_env.scoring.score import Score, read_rows
from rg_env.scoring.scoring_rules import ScoringRules
from rg_env.task_rules.rules import Entry
from rg_env.task_rules.table import solution
from rg_env.tasks.library_import import TASKS
from rg_env.tasks.sampler import MAX_ATTEMPTS, entry_seed
from rg_env.workers.pool_errors import JobError, PoolError
from rg_env.workers.worker_pool import WorkerPool

DEADLINE_S = 30.0
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


async def _scores(
    pool: WorkerPool, task: str, entry: Entry, answers: Sequence[str], fixes: bool
) -> tuple[float, list[Score]]:
    """Return the time in milliseconds, and the scores."""
    rules = ScoringRules(scorer_fixes=fixes)
    call: tuple[Any, ...] = (worker_jobs.score_answers, task, {}, entry, answers, rules)
    took_ms, rows = await pool.run(worker_jobs.timed, *call, deadline_s=DEADLINE_S)
    return took_ms, read_rows(answers, rows)


async def _solution(pool: WorkerPool, task: str, entry: Entry) -> str | None:
    """Return an answer that scores 1.0; the rules of a user's tasks are in workers."""
    if task in TASKS:
        return solution(task, entry)
    return await pool.run(solution, task, entry, deadline_s=DEADLINE_S)


async def gold_fault(
    pool: WorkerPool,
    task: str,
    params: Mapping[str, Any],
    entry: Entry,
    rules: ScoringRules,
) -> str | None:
    """Return what is wrong with the score of an entry's gold answer, None if nothing.

    A task whose entries hold no answer cannot be judged by this and passes.
    """
    try:
        gold = await _solution(pool, task, entry)
        if gold is None:
            return None
        scores: Any = await pool.run(
            worker_jobs.score_answers,
            task,
            dict(params),
            entry,
            [gold],
            rules,
            deadline_s=DEADLINE_S,
            trust=scores_of([gold]),
        )
        if scores[0].value == 1.0:
            return None
        why = scores[0].outcome
        if why == "scorer_error":
            how = (task, dict(params), gold, entry)
            job = worker_jobs.scorer_fault
            why = await pool.run(job, *how, deadline_s=DEADLINE_S) or why
    except PoolError as error:
        return f"its reference answer cannot be scored: {error}"
    return f"its reference answer scores {scores[0].value:.2f} ({why})"


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
        try:
            how: tuple[Any, ...] = (task, {}, "doctor", self.num_items, self.fixes)
            made = await make_items(self.pool, *how)
            make_ms = [took_ms for took_ms, _ in made]
            entries = [entry for _, entry in made]
            again = [entry for _, entry in await make_items(self.other, *how)]
            faults += self._repeat_faults(entries, again)
            faults += await self._gold_faults(task, entries, score_ms, notes)
            faults += await self._control_faults(task, entries)
        except PoolError as error:
            faults.append(f"{type(error).__name__}: {error}"[:200])
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

    async def _gold_faults(
        self,
        task: str,
        entries: Sequence[Entry],
        times_ms: list[float],
        notes: list[str],
    ) -> list[str]:
        """Score the gold answer where the entry was made, and in another process."""
        faults = []
        for entry in entries:
            gold = await _solution(self.pool, task, entry)
            if gold is None:
                notes.append("no reference answer to check the scorer with")
                break
            time_ms, here = await _scores(self.pool, task, entry, [gold], self.fixes)
            _, there = await _scores(self.other, task, entry, [gold], self.fixes)
            times_ms.append(time_ms)
            values = [here[0].value, there[0].value]
            if values != [1.0, 1.0]:
                here_there = f"{values[0]:.2f}, in another process {values[1]:.2f}"
                faults.append(f"the reference answer scores {here_there}")
        return faults

    async def _control_faults(self, task: str, entries: Sequence[Entry]) -> list[str]:
        """Return the constants that score although they are not the answer."""
        scored: dict[str, list[float]] = {control: [] for control in CONTROLS}
        for entry in entries:
            _, scores = await _scores(self.pool, task, entry, CONTROLS, self.fixes)
            gold = await _solution(self.pool, task, entry)
            for control, score in zip(CONTROLS, scores, strict=True):
                if not _is_same(control, gold):
                    scored[control].append(score.value)
        return [
            f"{control!r} scores {statistics.fmean(values):.2f}"
            for control, values in scored.items()
            if values and statistics.fmean(values) > MOST_FOR_NOTHING
        ]
