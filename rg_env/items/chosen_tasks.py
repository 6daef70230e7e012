"""Which tasks a run uses, checked by the library, and the stream that is drawn of them.

The file of a mixture has the format of the library's `composite`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rg_env import yaml_text
from rg_env.errors import SettingError, shown
from rg_env.items import worker_jobs
from rg_env.items.installed_library import DEADLINE_S, prepare_difficulty
from rg_env.task_rules.rules import MIXTURE
from rg_env.tasks.adaptive import FLOOR, AdaptiveWeights
from rg_env.tasks.difficulty import NO_RULE, Difficulty, LevelSetting
from rg_env.tasks.feedback import Feedback
from rg_env.tasks.item_stream import ItemStream
from rg_env.tasks.library import LibraryDescription
from rg_env.tasks.selection import TaskChoice, TaskChoosing, build_selection
from rg_env.workers.worker_pool import WorkerPool
from rg_env.yaml_text import YamlError

if TYPE_CHECKING:  # what makes items must not need pydantic
    from rg_env.settings.environment_settings import CheckedSettings

MIXTURE_FIELD = "env.mixture"


def read_mixture(path: str, also_given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Read the parameters of `composite` from a YAML file with a list `datasets`.

    `also_given` is what `task_params` says of `composite`, which must be nothing.

    Raises:
        SettingError: The file cannot be read or holds something else.
    """
    field = MIXTURE_FIELD
    if also_given is not None:
        raise SettingError(f"{field}: task_params.composite is given as well; keep one")
    try:
        content = yaml_text.read(path)
    except YamlError as fault:
        raise SettingError(f"{field}: {shown(path)} cannot be used: {fault}") from fault
    if not isinstance(content, dict) or "datasets" not in content:
        raise SettingError(f"{field}: {shown(path)} has no list `datasets`")
    return {str(key): value for key, value in content.items()}


async def choose_tasks(
    pool: WorkerPool, library: LibraryDescription, settings: CheckedSettings
) -> tuple[TaskChoice, ...]:
    """Return the choices of a run; see `build_selection`.

    Raises:
        SettingError: A name or parameter does not exist, or the library refuses it.
    """
    tasks, params = settings.tasks, dict(settings.task_params)
    if settings.mixture is not None:
        params[MIXTURE] = read_mixture(settings.mixture, params.get(MIXTURE))
        if tasks is None and settings.categories is None:
            tasks = [MIXTURE]
    try:
        selection = build_selection(
            library,
            tasks=tasks,
            categories=settings.categories,
            exclude_tasks=settings.exclude_tasks,
            task_weights=settings.task_weights,
            task_params=params,
        )
    except SettingError as error:
        said = f"env.{error}"
        if settings.mixture is not None:  # where the user has written it
            said = said.replace(f"env.task_params.{MIXTURE}", MIXTURE_FIELD, 1)
        raise SettingError(said) from error
    await check_params(pool, [(c.task, c.params) for c in selection if c.params])
    return selection


async def check_params(
    pool: WorkerPool, given: Sequence[tuple[str, Mapping[str, Any]]]
) -> None:
    """Raise SettingError for the first parameters that the library rejects."""
    plain = [(task, dict(params)) for task, params in given]
    refusal = await pool.run(worker_jobs.check_params, plain, deadline_s=DEADLINE_S)
    if refusal is not None:
        raise SettingError(f"env.{refusal}")


# -- the stream ------------------------------------------------------------------------


async def prepare_stream(
    pool: WorkerPool,
    library: LibraryDescription,
    selection: Sequence[TaskChoice],
    feedback: Feedback,
    *,
    mode: LevelSetting,
    task_levels: Mapping[str, LevelSetting],
    seed: int,
    shard: tuple[int, int],
    task_choice: TaskChoosing = "weighted",
    adaptive_floor: float = FLOOR,
) -> tuple[ItemStream, Difficulty]:
    """Return the stream of the selection and its levels; attach the feedback to them.

    `shard` is the place of this instance among those that share the stream, and their
    number.

    Raises:
        SettingError: A name of `task_levels` does not exist, or the library rejects
            parameters at one of the levels.
    """
    names = sorted({choice.task for choice in selection})
    levels = (mode, task_levels, feedback.curriculum)
    difficulty = await prepare_difficulty(pool, names, library.tasks, *levels)
    await check_params(pool, _params_at_every_step(selection, difficulty))
    adaptive = None
    if task_choice == "adaptive":
        adaptive = AdaptiveWeights(names, adaptive_floor)
    feedback.attach(difficulty, adaptive)
    stream = ItemStream(
        selection,
        seed,
        shard_index=shard[0],
        num_shards=shard[1],
        difficulty=difficulty,
        adaptive=adaptive,
        in_turn=task_choice == "in_turn",
    )
    return stream, difficulty


def _params_at_every_step(
    selection: Sequence[TaskChoice], difficulty: Difficulty
) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the parameters that own settings make of each step of a scale."""
    return [
        (choice.task, {**step.params, **choice.params})
        for choice in selection
        if choice.params and difficulty.rule_of(choice.task) != NO_RULE
        for step in difficulty.scales[choice.task].steps
    ]
