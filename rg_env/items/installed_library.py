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

from rg_env import yaml_text
from rg_env.errors import LibraryError, SettingError, shown
from rg_env.items import worker_jobs
from rg_env.items.stream import Stream
from rg_env.task_rules.rules import MIXTURE
from rg_env.task_rules.table import no_scale_reason
from rg_env.tasks import baselines as shipped_baselines
from rg_env.tasks import scales as shipped_scales
from rg_env.tasks.baselines import Baselines
from rg_env.tasks.difficulty import NO_RULE, Difficulty, LevelSetting, build_rules
from rg_env.tasks.feedback import FLOOR, AdaptiveWeights, Feedback
from rg_env.tasks.library import OWN_CATEGORY, LibraryDescription
from rg_env.tasks.scales import Scale
from rg_env.tasks.selection import TaskChoice, TaskChoosing, build_selection
from rg_env.workers.pool_errors import DeadlineExceededError, JobError, PreloadError
from rg_env.workers.worker_pool import WorkerPool
from rg_env.yaml_text import YamlError

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
    if error.is_a(ImportError, ModuleNotFoundError, PermissionError, FileNotFoundError):
        return LibraryError(
            f"workers cannot be started ({error}); `pip install -r requirements.txt`"
            " installs what they need; the user that runs this must be able to read it,"
            " and to write to the folder for temporary files (TMPDIR)"
        )
    if not error.kind:
        return LibraryError(
            "the process that imports reasoning-gym and the modules of your own tasks"
            f" {error.message}; `python -c 'import reasoning_gym.factory'` shows"
            " whether the library is the cause, and the machine's memory may be too"
            " small for it"
        )
    return error


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
    job = worker_jobs.curriculum_digests
    digests = await pool.run(job, curricula, deadline_s=DEADLINE_S)
    scales: dict[str, Scale] = {}
    reasons: dict[str, str] = {}
    changed = []
    for task in (info.name for info in infos):
        scale = table.scales.get(task)
        if task in own:
            own_scale = await _own_scale(pool, task)
            if isinstance(own_scale, Scale):
                scales[task] = own_scale
            else:
                reasons[task] = own_scale
        elif task not in digests:
            reasons[task] = no_scale_reason(task)
        elif scale is not None and scale.digest == digests[task]:
            scales[task] = scale
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
    known = [task for task in names if task in table.by_task]
    job = worker_jobs.curriculum_digests
    digests = await pool.run(job, known, deadline_s=DEADLINE_S)
    by_task = {
        t: table.by_task[t] for t in known if table.by_task[t].digest == digests[t]
    }
    unknown = [task for task in names if task not in by_task]
    own = sorted({c.task for c in selection if c.params} & by_task.keys())
    if unknown:
        logger.warning(
            "reward_baseline: the baseline of %d tasks is 0, because the installed"
            " reasoning-gym differs from the measured version %s: %s",
            *(len(unknown), table.library_version, ", ".join(unknown)),
        )
    if own:
        logger.warning(
            "reward_baseline: no baseline was measured with parameters of your own, and"
            " it is 0 for: %s",
            ", ".join(own),
        )
    return dataclasses.replace(table, by_task=by_task)


# -- the stream ------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class StreamSettings:
    """What decides the items of a stream, by the names of the settings."""

    tasks: Sequence[str] | None = None
    categories: Sequence[str] | None = None
    exclude_tasks: Sequence[str] = ()
    task_weights: Mapping[str, float] = dataclasses.field(default_factory=dict)
    task_params: Mapping[str, Mapping[str, Any]] = dataclasses.field(
        default_factory=dict
    )
    mixture: str | None = None
    task_choice: TaskChoosing = "weighted"
    adaptive_floor: float = FLOOR
    complexity_mode: LevelSetting = None
    task_levels: Mapping[str, LevelSetting] = dataclasses.field(default_factory=dict)
    seed: int = 0
    shard_index: int = 0
    num_shards: int = 1

    @property
    def follows_results(self) -> bool:
        """Whether results change which items come next."""
        levels = (self.complexity_mode, *self.task_levels.values())
        return self.task_choice == "adaptive" or "curriculum" in levels

    @staticmethod
    def of(settings: object) -> StreamSettings:
        """Return those of a run, which has more settings."""
        names = (field.name for field in dataclasses.fields(StreamSettings))
        return StreamSettings(**{name: getattr(settings, name) for name in names})


def read_mixture(path: str, also_given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Read the parameters of `composite` from a YAML file with a list `datasets`.

    `also_given` is what `task_params` says of `composite`, which must be nothing.

    Raises:
        SettingError: The file cannot be read or holds something else.
    """
    if also_given is not None:
        reason = "task_params.composite is given as well; keep one"
        raise SettingError(reason, "mixture")
    try:
        content = yaml_text.read(path)
    except YamlError as fault:
        reason = f"{shown(path)} cannot be used: {fault}"
        raise SettingError(reason, "mixture") from fault
    if not isinstance(content, dict) or "datasets" not in content:
        raise SettingError(f"{shown(path)} has no list `datasets`", "mixture")
    return content


def _selection(
    library: LibraryDescription, settings: StreamSettings
) -> tuple[TaskChoice, ...]:
    tasks, params = settings.tasks, dict(settings.task_params)
    place = f"task_params.{MIXTURE}"
    if settings.mixture is not None:
        params[MIXTURE] = read_mixture(settings.mixture, params.get(MIXTURE))
        place = "mixture"
        if tasks is None and settings.categories is None:
            tasks = [MIXTURE]
    return build_selection(
        library,
        tasks=tasks,
        categories=settings.categories,
        exclude_tasks=settings.exclude_tasks,
        task_weights=settings.task_weights,
        task_params=params,
        mixture_field=place,
    )


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
    selection = _selection(library, settings)
    names = sorted({choice.task for choice in selection})
    own = [(choice.task, dict(choice.params)) for choice in selection if choice.params]
    await _check_params(pool, own)
    difficulty = await _difficulty(pool, library, names, settings, feedback)
    await _check_params(
        pool,
        [
            (task, {**step.params, **params})
            for task, params in own
            if difficulty.rule_of(task) != NO_RULE
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
    pool: WorkerPool, params_by_task: Sequence[tuple[str, Mapping[str, Any]]]
) -> None:
    job = worker_jobs.rejected_params
    rejected = await pool.run(job, params_by_task, deadline_s=DEADLINE_S)
    if rejected is not None:
        task, reason = rejected
        raise SettingError(reason, f"task_params.{task}")
