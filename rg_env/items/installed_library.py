"""What workers say of the installed library, and the stream that settings mean there.

A row of a shipped table is valid for a task if the library's source code is the same as
when the table was made. Other tasks keep the library's default parameters and get the
baseline 0; the log names them. The scales of a user's own tasks are made from their
curricula.

Everything that samples items begins with `read_library` and `prepare_stream`: a run,
`Tasks`, an export, the simulated server.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rg_env.errors import LibraryError, SettingError
from rg_env.items import worker_jobs
from rg_env.items.stream import Stream
from rg_env.task_rules.table import no_scale_reason
from rg_env.tasks import baselines as shipped_baselines
from rg_env.tasks import scales as shipped_scales
from rg_env.tasks.baselines import Baselines
from rg_env.tasks.difficulty import Difficulty, build_rules
from rg_env.tasks.feedback import AdaptiveWeights, Feedback
from rg_env.tasks.library import OWN_CATEGORY, LibraryDescription
from rg_env.tasks.scales import Scale
from rg_env.tasks.selection import StreamSettings, TaskChoice, build_selection
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
        raise explained(error) from error


def explained(error: PreloadError) -> Exception:
    """Return the error message for a failed start of the workers, with a remedy."""
    if error.is_a(SettingError):
        return SettingError(error.message)
    if error.is_a(LibraryError):
        return LibraryError(error.message)
    missing = (ImportError, ModuleNotFoundError, PermissionError, FileNotFoundError)
    if error.kind and not error.is_a(*missing):
        return error
    return LibraryError(
        f"workers cannot be started ({error}); `python -c 'import"
        " reasoning_gym.factory'` shows whether the library is the cause. The user that"
        " runs this must be able to read it, and to write to the folder for temporary"
        " files (TMPDIR)"
    )


# -- the shipped tables ----------------------------------------------------------------


async def read_scales(
    pool: WorkerPool, library: LibraryDescription, tasks: Iterable[str]
) -> tuple[dict[str, Scale], dict[str, str]]:
    """Return the scales of tasks that have one, and why the others have none.

    Raises:
        SettingError: The curriculum of a user's own task fails.
    """
    table = shipped_scales.load_shipped()
    infos = [library.tasks[task] for task in tasks]
    own = {info.name for info in infos if info.category == OWN_CATEGORY}
    curricula = [i.name for i in infos if i.has_curriculum and i.name not in own]
    digests = await _digests(pool, curricula)
    scales: dict[str, Scale] = {}
    reasons: dict[str, str] = {}
    changed = f"its curriculum is not that of reasoning-gym {table.library_version}"
    for task in (info.name for info in infos):
        scale: Scale | str | None = table.scales.get(task)
        if task in own:
            scale = await _own_scale(pool, task)
        elif task not in digests:
            scale = no_scale_reason(task)
        elif not isinstance(scale, Scale) or scale.digest != digests[task]:
            scale = changed
        if isinstance(scale, Scale):
            scales[task] = scale
        else:
            reasons[task] = scale
    if others := [task for task, reason in reasons.items() if reason is changed]:
        logger.warning(
            "the curricula of %d tasks are not those of reasoning-gym %s; these keep"
            " the library's default parameters: %s",
            *(len(others), table.library_version, ", ".join(others)),
        )
    return scales, reasons


async def _digests(pool: WorkerPool, tasks: list[str]) -> dict[str, str]:
    job = worker_jobs.curriculum_digests
    return await pool.run(job, tasks, deadline_s=DEADLINE_S)


async def _own_scale(pool: WorkerPool, task: str) -> Scale | str:
    job = worker_jobs.own_scale
    try:
        return await pool.run(job, task, deadline_s=CURRICULUM_DEADLINE_S)
    except (DeadlineExceededError, JobError) as error:
        message = f"task {task!r} of your own: its curriculum fails ({error})"
        raise SettingError(message) from error


async def prepare_baselines(
    pool: WorkerPool, selection: Sequence[TaskChoice]
) -> Baselines:
    """Return the baselines that hold for the installed library; log what has none."""
    table = shipped_baselines.load_shipped()
    names = sorted({choice.task for choice in selection})
    digests = await _digests(pool, [task for task in names if task in table.by_task])
    by_task = {
        task: table.by_task[task]
        for task, digest in digests.items()
        if table.by_task[task].digest == digest
    }
    own = {choice.task for choice in selection if choice.params}
    for why, tasks in (
        (
            f"reasoning-gym differs from the measured {table.library_version}",
            [task for task in names if task not in by_task],
        ),
        ("parameters of your own were not measured", sorted(own & by_task.keys())),
    ):
        if tasks:
            named = ", ".join(tasks)
            logger.warning("reward_baseline is 0 because %s, for: %s", why, named)
    return dataclasses.replace(table, by_task=by_task)


# -- the stream ------------------------------------------------------------------------


async def _difficulty(
    pool: WorkerPool,
    library: LibraryDescription,
    tasks: Sequence[str],
    settings: StreamSettings,
    feedback: Feedback,
) -> Difficulty:
    """Read the scales of the chosen tasks; set the bounds of the curriculum."""
    mode, curriculum = settings.complexity_mode, feedback.curriculum
    scales, unscaled = await read_scales(pool, library, tasks)
    unscaled |= {task: scale.note for task, scale in scales.items() if scale.is_dead}
    rules = build_rules(tasks, library.tasks, unscaled, mode, settings.task_levels)
    usable = {task: scales[task] for task in tasks if task not in unscaled}
    curriculum.limit({task: rules[task].bounds for task in usable}, unscaled)
    if unscaled and (mode is not None or settings.task_levels):
        logger.info(
            "%d of %d tasks have no levels and keep their default parameters: %s",
            *(len(unscaled), len(tasks), ", ".join(sorted(unscaled))),
        )
    return Difficulty(usable, rules, curriculum)


async def prepare_stream(
    pool: WorkerPool,
    library: LibraryDescription,
    settings: StreamSettings,
    feedback: Feedback,
) -> Stream:
    """Return the stream that settings mean; attach the feedback to its levels.

    Raises:
        SettingError: A name or parameter does not exist, or the library rejects
            parameters, as they are given or with those of one of the levels.
    """
    selection = build_selection(library, settings)
    names = sorted({choice.task for choice in selection})
    own = [(choice.task, dict(choice.params)) for choice in selection if choice.params]
    await _check_params(pool, own)
    difficulty = await _difficulty(pool, library, names, settings, feedback)
    await _check_params(
        pool,
        [
            (task, {**step.params, **params})
            for task, params in own
            if difficulty.rules[task].mode != "default"
            for step in difficulty.scales[task].steps
        ],
    )
    adaptive = None
    if settings.task_choice == "adaptive":
        adaptive = AdaptiveWeights(names, settings.adaptive_floor)
    feedback.attach(difficulty, adaptive)
    return Stream(
        selection,
        settings.seed,
        shard_index=settings.shard_index,
        num_shards=settings.num_shards,
        difficulty=difficulty,
        adaptive=adaptive,
        in_turn=settings.task_choice == "in_turn",
    )


async def _check_params(
    pool: WorkerPool, given: Sequence[tuple[str, Mapping[str, Any]]]
) -> None:
    job = worker_jobs.rejected_params
    rejected = await pool.run(job, given, deadline_s=DEADLINE_S)
    if rejected is not None:
        task, reason = rejected
        raise SettingError(reason, f"task_params.{task}")
