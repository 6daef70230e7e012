"""The evaluation's items: the same in every process that has the same settings."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping, Sequence

from rg_env.items import worker_jobs
from rg_env.items.entry_maker import is_unusable
from rg_env.items.group_scorer import TaskHandle
from rg_env.items.item_settings import ItemSettings
from rg_env.items.item_source import MadeItem
from rg_env.tasks.item_stream import EvalSpec
from rg_env.tasks.selection import TaskChoice
from rg_env.workers.pool_errors import PoolClosed, PoolError
from rg_env.workers.worker_pool import WorkerPool


@dataclasses.dataclass(frozen=True)
class EvalItems:
    """The evaluation items, and the tasks that could make none with the reason."""

    items: Sequence[MadeItem]
    left_out: Mapping[str, str]


def evaluated_choices(
    selection: Sequence[TaskChoice], num_tasks: int | None, eval_seed: int
) -> list[TaskChoice]:
    """Return the choices to evaluate: all, or `num_tasks` chosen by `eval_seed`."""
    if num_tasks is None or num_tasks >= len(selection):
        return list(selection)
    chosen = random.Random(eval_seed).sample(range(len(selection)), num_tasks)
    return [selection[i] for i in sorted(chosen)]


async def make_eval_items(
    pool: WorkerPool, specs: Sequence[EvalSpec], settings: ItemSettings
) -> EvalItems:
    """Make evaluation items, one after the other.

    One that is not asked is replaced by the next attempt at it.
    """
    items: list[MadeItem] = []
    reasons = {}
    for spec in specs:
        made = await _made_or_reason(pool, spec, settings)
        if isinstance(made, str):
            reasons[spec.task] = made
        else:
            items.append(made)
    able = {item.handle.task for item in items}
    left_out = {task: why for task, why in reasons.items() if task not in able}
    return EvalItems(items, left_out)


async def _made_or_reason(
    pool: WorkerPool, wanted: EvalSpec, settings: ItemSettings
) -> MadeItem | str:
    """Make an item, or say why it cannot be made."""
    reason = ""
    for spec in (wanted, *wanted.others):
        try:
            entry = await pool.run(
                worker_jobs.make_entry,
                spec.task,
                dict(spec.params),
                spec.seed,
                settings.scoring_rules.scorer_fixes,
                deadline_s=settings.item_deadline_s,
            )
        except PoolClosed:
            raise
        except PoolError as error:
            reason = str(error)
            if not is_unusable(error):
                break
        else:
            return MadeItem(entry, _handle(spec, settings))
    return reason


def _handle(spec: EvalSpec, settings: ItemSettings) -> TaskHandle:
    return TaskHandle(
        task=spec.task,
        params=spec.params,
        seed=spec.seed,
        index=spec.number,
        split="evaluation",
        level=spec.level,
        deadline_s=settings.scoring_deadline_s,
        rules=settings.scoring_rules,
    )
