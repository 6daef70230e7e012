"""The workers that a process shares for everything outside a run."""

from __future__ import annotations

from collections.abc import Sequence

from rg_env.errors import SettingError
from rg_env.library import worker_jobs
from rg_env.library.own_tasks import checked
from rg_env.workers.worker_pool import WorkerPool

_pools: dict[tuple[str, ...], WorkerPool] = {}


def shared_pool(task_modules: tuple[str, ...] = ()) -> WorkerPool:
    """Return the pool of this process whose workers know these modules.

    Its workers start with the first call.
    """
    pool = _pools.get(task_modules)
    if pool is None:
        new = WorkerPool(preload=worker_jobs.preload_of(task_modules))
        # Without a lock, which a fork could leave taken in the child.
        pool = _pools.setdefault(task_modules, new)
        if pool is not new:
            new.close()
    return pool


def own_modules(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return modules of a user's own tasks, with absolute paths.

    Example:
        >>> own_modules(["package.own"])
        ('package.own',)

    Raises:
        SettingError: A module is not a name or a file.
    """
    each = [names] if isinstance(names, str) else names
    try:
        return tuple(map(checked, each))
    except ValueError as error:
        raise SettingError(f"task_modules: {error}") from error
