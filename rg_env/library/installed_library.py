"""Workers with the installed library, the description that they give, and its scales.

A shipped scale is valid if the source code of its task is that of a version of the
library that was probed. Other tasks keep the library's default parameters, and the log
names them. The scales of a user's own tasks are made from their curricula.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from rg_env.errors import LibraryError, SettingError
from rg_env.library import scales, worker_jobs
from rg_env.library.registry import OWN_CATEGORY, LibraryDescription
from rg_env.library.scales import Scale
from rg_env.task_rules.table import no_scale_reason
from rg_env.workers.call import DeadlineExceededError, JobError, PreloadError
from rg_env.workers.worker_pool import WorkerPool

logger = logging.getLogger(__name__)

# CPU time of a job that describes the library; the first one imports it.
DEADLINE_S = 300.0

_pools: dict[tuple[str, ...], WorkerPool] = {}


def shared_pool(task_modules: tuple[str, ...] = ()) -> WorkerPool:
    """Return the pool that this process shares for everything outside a run.

    Its workers load these modules, and start with the first call.
    """
    if task_modules not in _pools:
        new = WorkerPool(preload=worker_jobs.preload_calls(task_modules))
        # Without a lock, which a fork could leave taken in the child.
        if _pools.setdefault(task_modules, new) is not new:
            new.close()
    return _pools[task_modules]


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
    """Return the error for a user whose workers cannot be started, with the remedy."""
    for cls in (SettingError, LibraryError):
        if error.is_a(cls):
            return cls(error.message)
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
    shipped = scales.load_shipped()
    infos = [library.tasks[task] for task in tasks]
    curricula = [
        info.name
        for info in infos
        if info.has_curriculum and info.category != OWN_CATEGORY
    ]
    digests = await pool.run(
        worker_jobs.curriculum_digests, curricula, deadline_s=DEADLINE_S
    )
    valid_scales: dict[str, Scale] = {}
    reasons: dict[str, str] = {}
    changed = f"its curriculum is not that of reasoning-gym {shipped.library_version}"
    for info in infos:
        task = info.name
        scale: Scale | str | None = shipped.scales.get(task)
        if info.category == OWN_CATEGORY:
            scale = await _own_scale(pool, task)
        elif task not in digests:
            scale = no_scale_reason(task)
        elif not (isinstance(scale, Scale) and digests[task] in scale.digests):
            scale = changed
        if isinstance(scale, Scale):
            valid_scales[task] = scale
        else:
            reasons[task] = scale
    _warn_of_changed(
        [task for task, reason in reasons.items() if reason == changed],
        shipped.library_version,
    )
    return valid_scales, reasons


async def _own_scale(pool: WorkerPool, task: str) -> Scale | str:
    job = worker_jobs.own_scale
    try:
        return await pool.run(job, task, deadline_s=30.0)
    except (DeadlineExceededError, JobError) as error:
        message = f"task {task!r} of your own: its curriculum fails ({error})"
        raise SettingError(message) from error


def _warn_of_changed(tasks: Sequence[str], version: str) -> None:
    if tasks:
        logger.warning(
            "the curricula of %d tasks are not those of reasoning-gym %s; these keep"
            " the library's default parameters: %s",
            len(tasks),
            version,
            ", ".join(tasks),
        )
