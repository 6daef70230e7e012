"""The selection of tasks, with their parameters and weights.

The library's `composite` is a mixture, not a task. Its name stands for the tasks in its
`datasets` parameter, which has the library's format (name, weight, config), or for all
tasks without that parameter. They share its weight in proportion to their weights, and
their items count for them, not for the mixture.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec

from rg_env.errors import SettingError, unknown_name
from rg_env.library.datasets import ANSWER_DEADLINE_S, MAKING_DEADLINE_S
from rg_env.library.registry import CATEGORIES, LibraryDescription
from rg_env.reward.extraction import AnswerFormat
from rg_env.reward.score import DEFAULT_RULES, ScoringRules
from rg_env.stream.difficulty import LevelSetting
from rg_env.stream.seeds import training_seeds
from rg_env.task_rules.rules import MIXTURE

TaskChoosing = Literal["weighted", "adaptive", "in_turn"]
"""How a run draws among its choices."""

PresetName = Literal["rg-easy", "rg-hard"]
"""The published evaluations."""


@dataclasses.dataclass(frozen=True)
class TaskChoice:
    """One of the choices of a draw: a task with its parameters.

    Attributes:
        task: The name of the task, never that of the mixture.
        weight: Its share of the draws, relative to the weights of the other choices.
        params: Its dataset parameters that differ from the library's defaults.
    """

    task: str
    weight: float = 1.0
    params: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class StreamSettings:
    """The settings that decide the items of a run and their scores."""

    tasks: Sequence[str] | None = None
    categories: Sequence[str] | None = None
    exclude_tasks: Sequence[str] = ()
    task_weights: Mapping[str, float] = dataclasses.field(default_factory=dict)
    task_params: Mapping[str, Mapping[str, Any]] = dataclasses.field(
        default_factory=dict
    )
    task_choice: TaskChoosing = "weighted"
    complexity_mode: LevelSetting = None
    task_levels: Mapping[str, LevelSetting] = dataclasses.field(default_factory=dict)
    seed: int = 0
    shard_index: int = 0
    num_shards: int = 1
    task_modules: Sequence[str] = ()
    system_prompt: str | Sequence[str] | None = None
    answer_format: AnswerFormat = "tags"
    scoring_rules: ScoringRules = DEFAULT_RULES
    scoring_deadline_s: float = ANSWER_DEADLINE_S
    item_deadline_s: float = MAKING_DEADLINE_S
    worker_count: int = 1
    num_eval_samples_per_task: int = 1
    num_eval_tasks: int | None = None
    eval_seed: int = 0
    eval_level: float | None = None
    eval_preset: PresetName | None = None

    @property
    def follows_results(self) -> bool:
        """Whether results change which items come next."""
        levels = (self.complexity_mode, *self.task_levels.values())
        return self.task_choice == "adaptive" or "curriculum" in levels

    def seeds_at(self, index: int) -> Iterator[int]:
        """Yield the seeds of the attempts at the item of a global index."""
        return training_seeds(self.seed, index, in_turn=self.task_choice == "in_turn")

    @staticmethod
    def from_config(config: object) -> StreamSettings:
        """Return these settings of a config, which has attributes of their names."""
        fields = dataclasses.fields(StreamSettings)
        return StreamSettings(**{f.name: getattr(config, f.name) for f in fields})


class MixtureDataset(msgspec.Struct, forbid_unknown_fields=True):
    """One of the `datasets` of a mixture, in the library's format."""

    name: str
    weight: Annotated[float, msgspec.Meta(gt=0)] = 1.0
    config: dict[str, Any] | None = None


def unknown_task(
    field: str, name: str, known: Iterable[str], kind: str = "task"
) -> SettingError:
    """Return the error for a name that no task has, though a category may have it."""
    if name not in CATEGORIES.values():
        return unknown_name(field, name, known, kind)
    return SettingError(
        f"{name!r} is a category, for `categories`; `tasks --category {name}` lists its"
        " tasks",
        field,
    )


def _matching(
    field: str, patterns: Iterable[str], names: Sequence[str], kind: str = "task"
) -> list[str]:
    """Return the names that match any pattern, each once, in order of the patterns."""
    matching: dict[str, None] = {}
    for pattern in patterns:
        matched = fnmatch.filter(names, pattern)
        if not matched:
            raise unknown_task(field, pattern, names, kind)
        matching.update(dict.fromkeys(matched))
    return list(matching)


def _chosen_names(library: LibraryDescription, settings: StreamSettings) -> list[str]:
    names = list(library.tasks)
    if settings.tasks is None and settings.categories is None:
        return names
    tasks = settings.tasks or []
    by_name = _matching("tasks", tasks, [*names, MIXTURE])
    if MIXTURE in by_name and MIXTURE not in tasks:
        by_name.remove(MIXTURE)  # a pattern such as "*" only means tasks
    known = sorted({info.category for info in library.tasks.values()})
    chosen = _matching("categories", settings.categories or [], known, "category")
    by_category = [name for name in names if library.tasks[name].category in chosen]
    return by_category + by_name


def _mixture_choices(
    library: LibraryDescription,
    weight: float,
    params: Mapping[str, Any],
    excluded: Collection[str],
) -> list[TaskChoice]:
    """Return the choices of the tasks in a mixture, which share its weight."""
    field = f"task_params.{MIXTURE}"
    unknown = set(params) - {"datasets", "size", "seed"}
    if unknown:
        raise unknown_name(field, min(unknown), ["datasets"], "parameter")
    field = f"{field}.datasets"
    try:
        datasets = msgspec.convert(params.get("datasets"), list[MixtureDataset] | None)
    except msgspec.ValidationError as error:
        raise SettingError(str(error), field) from error
    if datasets is None:
        datasets = [MixtureDataset(name) for name in library.tasks]
    choices = []
    for dataset in datasets:
        if dataset.name not in library.tasks:
            raise unknown_name(field, dataset.name, library.tasks, "task")
        if dataset.name not in excluded:
            config = dict(dataset.config or {})
            # The stream sets these two, which the library's format has too.
            config.pop("seed", None)
            config.pop("size", None)
            choices.append(TaskChoice(dataset.name, dataset.weight, config))
    total = sum(choice.weight for choice in choices)
    return [
        dataclasses.replace(choice, weight=weight * choice.weight / total)
        for choice in choices
    ]


def build_selection(
    library: LibraryDescription, settings: StreamSettings
) -> tuple[TaskChoice, ...]:
    """Return the choices of the settings.

    Returns:
        At least one choice. No two have the same task and parameters. They are sorted,
        so that the order of names in the settings does not change the draws.

    Raises:
        SettingError: A name is unknown, a weight is not positive, or nothing is left.
    """
    weights = settings.task_weights
    params = settings.task_params
    known = [*library.tasks, MIXTURE]
    excluded = set(_matching("exclude_tasks", settings.exclude_tasks, known))
    names = set(_chosen_names(library, settings)) - excluded
    for field, by_task in (("task_weights", weights), ("task_params", params)):
        for name in by_task:
            if name not in known:
                raise unknown_task(field, name, known)
            if name not in names:
                raise SettingError(f"{name!r} is not among the chosen tasks", field)
    choices: list[TaskChoice] = []
    for name in sorted(names):
        weight = float(weights.get(name, 1.0))
        task_params = params.get(name, {})
        if not (weight > 0 and math.isfinite(weight)):
            field = f"task_weights.{name}"
            raise SettingError(f"a weight must be above 0, found {weight!r}", field)
        if name == MIXTURE:
            choices += _mixture_choices(library, weight, task_params, excluded)
        else:
            choices.append(TaskChoice(name, weight, dict(task_params)))
    if not choices:
        raise SettingError(
            "nothing is left to sample; choose a task or exclude fewer", "tasks"
        )
    merged: dict[tuple[str, str], TaskChoice] = {}
    for choice in choices:
        key = (choice.task, repr(sorted(choice.params.items())))
        if key in merged:
            weight = choice.weight + merged[key].weight
            choice = dataclasses.replace(choice, weight=weight)
        merged[key] = choice
    return tuple(merged[key] for key in sorted(merged))
