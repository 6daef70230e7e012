"""The baselines of a run: the shipped ones of tasks that are what was measured."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from rg_env.items import worker_jobs
from rg_env.tasks.baselines import Baselines, load_shipped
from rg_env.tasks.selection import TaskChoice
from rg_env.workers.worker_pool import WorkerPool

logger = logging.getLogger(__name__)

DIGEST_DEADLINE_S = 120.0


def _say_without(baselines: Baselines, selection: Sequence[TaskChoice]) -> None:
    """Log once which items have the baseline 0 because nothing was measured."""
    unknown = sorted({c.task for c in selection} - baselines.by_task.keys())
    own = sorted({c.task for c in selection if c.params} - set(unknown))
    if unknown:
        logger.warning(
            "reward_baseline: of %d tasks as the installed reasoning-gym has them no"
            " baseline was measured (the table is of %s), and theirs is 0: %s",
            len(unknown),
            baselines.library_version,
            ", ".join(unknown),
        )
    if own:
        logger.warning(
            "reward_baseline: no baseline was measured with parameters of your own, and"
            " it is 0 for: %s",
            ", ".join(own),
        )


async def prepare_baselines(
    pool: WorkerPool,
    selection: Sequence[TaskChoice],
    *,
    shipped: Baselines | None = None,
) -> Baselines:
    """Return the baselines that hold for the installed library.

    Args:
        pool: Where the library is read.
        selection: What the draws fall on.
        shipped: The table; None for the one that comes with the project.
    """
    table = load_shipped() if shipped is None else shipped
    names = sorted({choice.task for choice in selection})
    digests = await pool.run(
        worker_jobs.curriculum_digests, names, deadline_s=DIGEST_DEADLINE_S
    )
    measured = table.by_task.items()
    baselines = table.of_tasks(
        {t for t, row in measured if digests.get(t) == row.digest}
    )
    _say_without(baselines, selection)
    return baselines
