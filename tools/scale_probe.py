"""Which levels of the library's curricula can be used, found by probing them.

Every level is built, items are made of it in worker processes with a deadline, and the
gold answer of each is scored. What probing cannot know is in the rules of the task: how
a level is repaired, and which curricula set nothing that is read.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from rg_env.items import worker_jobs
from rg_env.items.installed_library import DEADLINE_S as LIBRARY_S
from rg_env.items.task_check import gold_fault, is_unusable
from rg_env.task_rules.table import solution
from rg_env.tasks.sampler import entry_seed
from rg_env.tasks.scales import SkippedLevel, Step, curriculum_levels, steps_of
from rg_env.workers.pool_errors import DeadlineExceededError, JobError, WorkerDiedError
from rg_env.workers.worker_pool import WorkerPool

MAX_HUNG_SHARE = 0.05
MAX_FAULTY_SHARE = 0.1
"""Items whose gold answer is not scored in full."""

MAX_LOST_SHARE = 0.25
"""Items that give no entry: each costs a draw and nothing else."""

MAX_REFUSED_SHARE = 0.9
"""Items that are made and not sampled: each costs one of a draw's many attempts."""

MAX_MEDIAN_MS = 8_000.0

NUM_ITEMS = 20
"""Items of a step."""

MAX_ITEMS = 60
"""Items of a step that had any trouble."""

DEADLINE_S = 20.0
"""For making an item."""

BUDGET_S = 120.0
"""Of making items, after which a step gets no further one."""


@dataclasses.dataclass
class ProbeTally:
    """What happened when items of one configuration were made.

    Attributes:
        hung: Items that were not ready at the deadline.
        lost: Reason to the number of items that the library gave up or that ended
            their worker.
        refused: Reason to the number of items that are not sampled.
        faults: What is wrong with the score of a gold answer, to how often.
    """

    made_ms: list[float] = dataclasses.field(default_factory=list)
    hung: int = 0
    lost: Counter[str] = dataclasses.field(default_factory=Counter)
    refused: Counter[str] = dataclasses.field(default_factory=Counter)
    faults: Counter[str] = dataclasses.field(default_factory=Counter)

    @property
    def begun(self) -> int:
        given_up = self.lost.total() + self.refused.total()
        return len(self.made_ms) + self.hung + given_up

    @property
    def has_trouble(self) -> bool:
        refused = self.refused.total()
        return self.hung + self.lost.total() + refused + self.faults.total() > 0

    def needs_more(self) -> bool:
        """Say whether another item may change the verdict."""
        if self.hung == self.begun >= 2 or self.hung > MAX_HUNG_SHARE * MAX_ITEMS:
            return False
        return self.begun < (MAX_ITEMS if self.has_trouble else NUM_ITEMS)

    def reason_against(self) -> str | None:
        """Return why the configuration cannot be used, None if it can."""
        begun = self.begun
        if self.hung > MAX_HUNG_SHARE * begun:
            late = f"{self.hung} of {begun} items"
            return f"{late} were not ready after {DEADLINE_S:g} s"
        for counted, most, what in (
            (self.lost, MAX_LOST_SHARE, "cannot be made"),
            (self.refused, MAX_REFUSED_SHARE, "are not asked"),
            (self.faults, MAX_FAULTY_SHARE, "are wrong"),
        ):
            if counted.total() > most * begun:
                said, _ = counted.most_common(1)[0]
                return f"{counted.total()} of {begun} items {what}: {said}"
        median_ms = statistics.median(self.made_ms)
        if median_ms > MAX_MEDIAN_MS:
            return f"an item takes {median_ms / 1000:.0f} s"
        return None


async def _fault(
    pool: WorkerPool, task: str, params: Mapping[str, Any], entry: Mapping[str, Any]
) -> str | None:
    """Return what is wrong with an entry's gold answer, as far as it has one."""
    if not solution(task, entry):
        return None
    return await gold_fault(pool, task, params, entry, deadline_s=30.0)


async def probe_params(
    pool: WorkerPool, task: str, params: Mapping[str, Any]
) -> ProbeTally:
    """Make items of a configuration and score their gold answers."""
    tally = ProbeTally()
    spent_s = 0.0
    while tally.needs_more() and spent_s < BUDGET_S:
        seed = entry_seed("evaluation", f"scales/{task}", tally.begun)
        call: tuple[Any, ...] = (worker_jobs.make_entry, task, dict(params), seed)
        try:
            took_ms, entry = await pool.run(
                worker_jobs.timed, *call, deadline_s=DEADLINE_S
            )
        except DeadlineExceededError:
            tally.hung += 1
            spent_s += DEADLINE_S
        except (JobError, WorkerDiedError) as error:
            given_up = tally.refused if is_unusable(error) else tally.lost
            given_up[str(error)[:160]] += 1
        else:
            tally.made_ms.append(took_ms)
            spent_s += took_ms / 1000
            fault = await _fault(pool, task, params, entry)
            if fault is not None:
                tally.faults[fault] += 1
    return tally


async def probe_task(
    pool: WorkerPool,
    task: str,
    report: Callable[[str, tuple[int, ...], ProbeTally], None] = lambda *_: None,
) -> tuple[list[Step], list[SkippedLevel]]:
    """Return the steps of a task that can be used, and the levels that cannot."""
    levels = await pool.run(curriculum_levels, task, deadline_s=LIBRARY_S)
    steps = []
    candidates, skipped = steps_of(levels)
    for step in candidates:
        tally = await probe_params(pool, task, step.params)
        report(task, step.levels, tally)
        reason = tally.reason_against()
        if reason is None:
            median_ms = statistics.median(tally.made_ms)
            steps.append(dataclasses.replace(step, item_ms=round(median_ms, 2)))
        else:
            skipped += [SkippedLevel(number, reason) for number in step.levels]
    return steps, skipped
