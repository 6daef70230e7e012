"""Workers with the installed library, their answers about it, and its scales.

A scale is valid for a task whose source code is that of a version of the library that
was probed. Other tasks keep the library's default parameters, and the log names them.
The scales of a user's own tasks are made from their curricula.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from rg_env.errors import LibraryError, SettingError
from rg_env.library import scales as shipped_scales
from rg_env.library import worker_jobs
from rg_env.library.registry import OWN_CATEGORY, LibraryDescription
from rg_env.library.scales import Scale
from rg_env.task_rules.table import no_scale_reason
from rg_env.workers.call import DeadlineExceededError, JobError, PreloadError
from rg_env.workers.worker_pool import WorkerPool

logger = logging.getLogger(__name__)

# For jobs about the library; the first one imports it.
DEADLINE_S = 300.0

_pools: dict[tuple[str, ...], WorkerPool] = {}


def shared_pool(task_modules: tuple[str, ...] = ()) -> WorkerPool:
    """Return the pool that this process shares for everything outside a run.

    Its workers know these modules, and start with the first call.
    """
    pool = _pools.get(task_modules)
    if pool is None:
        new = WorkerPool(preload=worker_jobs.preload_calls(task_modules))
        # Without a lock, which a fork could leave taken in the child.
        pool = _pools.setdefault(task_modules, new)
        if pool is not new:
            new.close()
    return pool


async def read_library(pool: WorkerPool) -> LibraryDescription:
    """Return the description of the library from a worker with `PRELOAD`.

    Raises:
        SettingError: A module of a user's own tasks cannot be used.
        LibraryError: reasoning-gym or another requirement of workers cannot be used.
        PoolError: No worker could be started.
    """
    try:
        return await pool.run(worker_jobs.describe_library, deadline_s=DEADLINE_S)
    except PreloadError as error:
        raise startup_error(error) from error


def startup_error(error: PreloadError) -> SettingError | LibraryError:
    """Return the error message for a failed start of the workers, with a remedy."""
    if error.is_a(SettingError):
        return SettingError(error.message)
    if error.is_a(LibraryError):
        return LibraryError(error.message)
    return LibraryError(
        f"workers cannot be started ({error}); `python -c 'import"
        " reasoning_gym.factory'` shows whether the library is the cause. The user that"
        " runs this must be able to read it, and to write to the folder for temporary"
        " files (TMPDIR)"
    )


async def read_scales(
    pool: WorkerPool, library: LibraryDescription, tasks: Iterable[str]
) -> tuple[dict[str, Scale], dict[str, str]]:
    """Return the scales of tasks, and the reasons why others have none.

    Raises:
        SettingError: The curriculum of a user's own task fails.
    """
    table = shipped_scales.load_shipped()
    infos = [library.tasks[task] for task in tasks]
    own = {info.name for info in infos if info.category == OWN_CATEGORY}
    curricula = [i.name for i in infos if i.has_curriculum and i.name not in own]
    job = worker_jobs.curriculum_digests
    digests = await pool.run(job, curricula, deadline_s=DEADLINE_S)
    scales: dict[str, Scale] = {}
    reasons: dict[str, str] = {}
    changed = f"its curriculum is not that of reasoning-gym {table.library_version}"
    for task in (info.name for info in infos):
        found: Scale | str | None = table.scales.get(task)
        if task in own:
            found = await _own_scale(pool, task)
        elif task not in digests:
            found = no_scale_reason(task)
        elif not (isinstance(found, Scale) and digests[task] in found.digests):
            found = changed
        if isinstance(found, Scale):
            scales[task] = found
        else:
            reasons[task] = found
    if others := [task for task, reason in reasons.items() if reason is changed]:
        logger.warning(
            "the curricula of %d tasks are not those of reasoning-gym %s; these keep"
            " the library's default parameters: %s",
            len(others),
            table.library_version,
            ", ".join(others),
        )
    return scales, reasons


async def _own_scale(pool: WorkerPool, task: str) -> Scale | str:
    job = worker_jobs.own_scale
    try:
        return await pool.run(job, task, deadline_s=30.0)
    except (DeadlineExceededError, JobError) as error:
        message = f"task {task!r} of your own: its curriculum fails ({error})"
        raise SettingError(message) from error
