"""A description of the installed library, and which shipped tables are valid for it.

A row of a table is valid for a task if the library's source code is the same as when
the table was made. Other tasks keep the library's default parameters and get the
baseline 0; the log names them. The scales of a user's own tasks are made from their
curricula.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence

from rg_env.errors import LibraryError, SettingError
from rg_env.items import worker_jobs
from rg_env.task_rules.table import no_scale_reason
from rg_env.tasks import baselines as shipped_baselines
from rg_env.tasks import scales as shipped_scales
from rg_env.tasks.baselines import Baselines
from rg_env.tasks.curriculum import Curriculum
from rg_env.tasks.difficulty import Difficulty, LevelSetting, build_rules
from rg_env.tasks.library import LibraryDescription
from rg_env.tasks.scales import Scale
from rg_env.tasks.selection import TaskChoice
from rg_env.tasks.task_modules import modules_of
from rg_env.workers.pool_errors import DeadlineExceededError, JobError, PreloadError
from rg_env.workers.worker_pool import WorkerPool

logger = logging.getLogger(__name__)

DEADLINE_S = 300.0
"""For questions about the library, of which the first one imports it."""

CURRICULUM_DEADLINE_S = 30.0
"""For a user's curriculum to say its levels."""


async def read_library(pool: WorkerPool) -> LibraryDescription:
    """Return the description of the library, by workers that have `PRELOAD`.

    Raises:
        SettingError: A module of a user's own tasks cannot be used.
        LibraryError: reasoning-gym cannot be used, or what workers need beside it.
        PoolError: No worker could be started.
    """
    try:
        return await pool.run(worker_jobs.describe_library, deadline_s=DEADLINE_S)
    except PreloadError as error:
        raise explained(error, pool) from error


def explained(error: PreloadError, pool: WorkerPool) -> Exception:
    """Return the error message for a failed start of the workers, with a remedy."""
    if error.is_a(SettingError):
        return SettingError(error.message)
    if error.is_a(LibraryError):
        return LibraryError(error.message)
    if error.is_a(ImportError, ModuleNotFoundError):
        return LibraryError(
            f"workers cannot be started ({error}); `pip install -r"
            " requirements.txt` installs what they need"
        )
    if error.is_a(PermissionError, FileNotFoundError):
        return LibraryError(
            f"workers cannot be started ({error}); the user that runs this must be"
            " able to read this project and the packages of Python, and to write to"
            " the folder for temporary files (TMPDIR)"
        )
    if not error.kind:
        modules = ["reasoning-gym", *modules_of(pool.preload)]
        return LibraryError(
            f"the process that imports {' and '.join(modules)} {error.message};"
            " `python -c 'import reasoning_gym.factory'` shows whether the library"
            " is the cause, and the machine's memory may be too small for it"
        )
    return error


async def read_scales(
    pool: WorkerPool, tasks: Iterable[str]
) -> tuple[dict[str, Scale], dict[str, str]]:
    """Return the scales of tasks that have one, and why the others have none."""
    table = shipped_scales.load_shipped()
    digests = await pool.run(worker_jobs.curriculum_digests, deadline_s=DEADLINE_S)
    own = set(await pool.run(worker_jobs.own_task_names, deadline_s=DEADLINE_S))
    scales: dict[str, Scale] = {}
    reasons: dict[str, str] = {}
    changed = []
    for task in tasks:
        if task in own:
            found = await _own_scale(pool, task)
            if isinstance(found, Scale):
                scales[task] = found
            else:
                reasons[task] = found
        elif task not in digests:
            reasons[task] = no_scale_reason(task)
        elif table.digests.get(task) == digests[task]:
            scales[task] = table.scales[task]
        else:
            changed.append(task)
            reasons[task] = (
                f"its curriculum is not that of reasoning-gym {table.library_version}"
            )
    if changed:
        logger.warning(
            "the curricula of %d tasks are not those of reasoning-gym %s; these keep"
            " the library's default parameters: %s",
            *(len(changed), table.library_version, ", ".join(changed)),
        )
    return scales, reasons


async def _own_scale(pool: WorkerPool, task: str) -> Scale | str:
    """Return the scale of a user's own task, or why it has none.

    Raises:
        SettingError: Its curriculum fails.
    """
    job = worker_jobs.own_scale
    try:
        found = await pool.run(job, task, deadline_s=CURRICULUM_DEADLINE_S)
    except (DeadlineExceededError, JobError) as error:
        raise SettingError(
            f"task {task!r} of your own: its curriculum fails ({error})"
        ) from error
    for level in found.skipped if isinstance(found, Scale) else ():
        logger.warning("task %s: no level %d: %s", task, level.level, level.reason)
    return found


async def prepare_difficulty(
    pool: WorkerPool,
    tasks: Sequence[str],
    known: Collection[str],
    mode: LevelSetting,
    task_levels: Mapping[str, LevelSetting],
    curriculum: Curriculum,
) -> Difficulty:
    """Read the scales of the chosen tasks and say how their levels are chosen.

    The bounds of the curriculum are set; `known` has every registered task.

    Raises:
        SettingError: A name of `task_levels`, or one that was given a level from
            outside, does not exist or has no scale.
    """
    scales, unscaled = await read_scales(pool, tasks)
    unscaled |= {task: scale.note for task, scale in scales.items() if scale.is_dead}
    rules = build_rules(tasks, known, unscaled, mode, task_levels)
    usable = {task: scales[task] for task in tasks if task not in unscaled}
    curriculum.limit({task: rules[task].bounds for task in usable}, unscaled)
    if unscaled and (mode is not None or task_levels):
        logger.info(
            "%d of %d tasks have no levels and keep their default parameters: %s",
            *(len(unscaled), len(tasks), ", ".join(sorted(unscaled))),
        )
    return Difficulty(usable, rules, curriculum)


async def prepare_baselines(
    pool: WorkerPool, selection: Sequence[TaskChoice]
) -> Baselines:
    """Return the baselines that hold for the installed library; log what has none."""
    table = shipped_baselines.load_shipped()
    names = sorted({choice.task for choice in selection})
    known = [task for task in names if task in table.by_task]
    digests = await pool.run(
        worker_jobs.curriculum_digests, known, deadline_s=DEADLINE_S
    )
    found = table.of_tasks(
        {t for t, row in table.by_task.items() if digests.get(t) == row.digest}
    )
    unknown = [task for task in names if task not in found.by_task]
    own = sorted({c.task for c in selection if c.params} - set(unknown))
    if unknown:
        logger.warning(
            "reward_baseline: the baseline of %d tasks is 0, because the installed"
            " reasoning-gym differs from the measured version %s: %s",
            *(len(unknown), found.library_version, ", ".join(unknown)),
        )
    if own:
        logger.warning(
            "reward_baseline: no baseline was measured with parameters of your own, and"
            " it is 0 for: %s",
            ", ".join(own),
        )
    return found
