"""What is installed, asked of the workers by every command before anything else."""

from __future__ import annotations

from rg_env.errors import LibraryError
from rg_env.items import worker_jobs
from rg_env.tasks.library import LibraryDescription
from rg_env.workers.pool_errors import PreloadFailed
from rg_env.workers.worker_pool import WorkerPool

DEADLINE_S = 300.0
MISSING = ("ImportError", "ModuleNotFoundError")


async def read_library(pool: WorkerPool) -> LibraryDescription:
    """Return the description of the library; see `library.describe`.

    Args:
        pool: A pool whose workers are forked with `worker_jobs.PRELOAD`.

    Raises:
        LibraryError: reasoning-gym cannot be used, or what workers need beside it.
        PoolError: No worker could be started.
    """
    try:
        return await pool.run(worker_jobs.describe_library, deadline_s=DEADLINE_S)
    except PreloadFailed as error:
        if error.kind == LibraryError.__name__:
            raise LibraryError(error.message) from error
        if error.kind in MISSING:
            raise LibraryError(
                f"workers cannot be started ({error}); `pip install -r"
                " requirements.txt` installs what they need"
            ) from error
        if not error.kind:
            raise LibraryError(
                f"the process that imports reasoning-gym {error.message}; `python -c"
                " 'import reasoning_gym.factory'` shows whether the library is the"
                " cause, and the machine's memory may be too small for it"
            ) from error
        raise
