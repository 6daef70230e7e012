"""From settings to the stream of items: the tasks, their levels and the draws.

Everything that samples items goes this way: a run, `Tasks`, an export, the simulated
server. The file of a mixture has the format of the library's `composite`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from rg_env import yaml_text
from rg_env.errors import SettingError, shown
from rg_env.items import worker_jobs
from rg_env.items.installed_library import DEADLINE_S, prepare_difficulty
from rg_env.items.stream import Stream
from rg_env.task_rules.rules import MIXTURE
from rg_env.tasks.difficulty import NO_RULE, Difficulty, LevelSetting
from rg_env.tasks.feedback import FLOOR, AdaptiveWeights, Feedback
from rg_env.tasks.library import LibraryDescription
from rg_env.tasks.selection import TaskChoice, TaskChoosing, build_selection
from rg_env.workers.worker_pool import WorkerPool
from rg_env.yaml_text import YamlError


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
    return {str(key): value for key, value in content.items()}


def _selection(
    library: LibraryDescription, settings: StreamSettings
) -> tuple[TaskChoice, ...]:
    tasks, params = settings.tasks, dict(settings.task_params)
    how = {}
    if settings.mixture is not None:
        params[MIXTURE] = read_mixture(settings.mixture, params.get(MIXTURE))
        how["mixture_field"] = "mixture"  # where the user has written it
        if tasks is None and settings.categories is None:
            tasks = [MIXTURE]
    return build_selection(
        library,
        tasks=tasks,
        categories=settings.categories,
        exclude_tasks=settings.exclude_tasks,
        task_weights=settings.task_weights,
        task_params=params,
        **how,
    )


async def _check_params(
    pool: WorkerPool, given: Sequence[tuple[str, Mapping[str, Any]]]
) -> None:
    """Raise SettingError for the first parameters that the library rejects."""
    plain = [(task, dict(params)) for task, params in given]
    refusal = await pool.run(worker_jobs.check_params, plain, deadline_s=DEADLINE_S)
    if refusal is not None:
        task, reason = refusal
        raise SettingError(reason, f"task_params.{task}")


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
    own = [choice for choice in selection if choice.params]
    await _check_params(pool, [(choice.task, choice.params) for choice in own])
    names = sorted({choice.task for choice in selection})
    difficulty = await prepare_difficulty(
        pool,
        names,
        library.tasks,
        settings.complexity_mode,
        settings.task_levels,
        feedback.curriculum,
    )
    await _check_params(pool, _at_every_step(own, difficulty))
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


def _at_every_step(
    own: Sequence[TaskChoice], difficulty: Difficulty
) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the parameters that own settings make of each step of a scale."""
    return [
        (choice.task, {**step.params, **choice.params})
        for choice in own
        if difficulty.rule_of(choice.task) != NO_RULE
        for step in difficulty.scales[choice.task].steps
    ]
