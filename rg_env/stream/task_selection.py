"""The selection of tasks, with their parameters and weights.

The library's `composite` is a mixture, not a task. Naming it stands for the tasks in
its `datasets` parameter (the library's own format: name, weight, config), or for all
tasks where none are given, and its weight is shared among them by their weights; its
items therefore count for the task that made them.
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
    """A task, with its parameters, that a draw can fall on."""

    task: str  # never the mixture
    weight: float = 1.0  # positive; the others have shares by their own weights
    # Dataset parameters that differ from the library's defaults.
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
    def from_config(settings: object) -> StreamSettings:
        """Take these settings from all settings of a run."""
        names = (field.name for field in dataclasses.fields(StreamSettings))
        return StreamSettings(**{name: getattr(settings, name) for name in names})


class MixturePart(msgspec.Struct, forbid_unknown_fields=True):
    """One of the `datasets` of a mixture, in the library's format."""

    name: str
    weight: Annotated[float, msgspec.Meta(gt=0)] = 1.0
    config: dict[str, Any] | None = None


def unknown_task(
    field: str, name: str, known: Iterable[str], kind: str = "task"
) -> SettingError:
    """Build the error for a name that no task has; it may name a category."""
    if name not in CATEGORIES.values():
        return unknown_name(field, name, known, kind)
    lists = f"`tasks --category {name}` lists its tasks"
    return SettingError(f"{name!r} is a category, for `categories`; {lists}", field)


def _matching(
    field: str, patterns: Iterable[str], names: Sequence[str], kind: str = "task"
) -> list[str]:
    """Return the names that match the patterns, in the patterns' order, once each."""
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
        by_name.remove(MIXTURE)  # a pattern like "*" means tasks
    known = sorted({info.category for info in library.tasks.values()})
    chosen = _matching("categories", settings.categories or [], known, "category")
    by_category = [name for name in names if library.tasks[name].category in chosen]
    return by_category + by_name


def _mixture_choices(
    library: LibraryDescription,
    weight: float,
    params: Mapping[str, Any],
    left_out: Collection[str],
) -> list[TaskChoice]:
    """Return the choices of the tasks in a mixture, which share its weight."""
    field = f"task_params.{MIXTURE}"
    unknown = set(params) - {"datasets", "size", "seed"}
    if unknown:
        raise unknown_name(field, min(unknown), ["datasets"], "parameter")
    field = f"{field}.datasets"
    try:
        parts = msgspec.convert(params.get("datasets"), list[MixturePart] | None)
    except msgspec.ValidationError as error:
        raise SettingError(str(error), field) from error
    choices = []
    for part in [MixturePart(n) for n in library.tasks] if parts is None else parts:
        config = part.config or {}
        if part.name not in library.tasks:
            raise unknown_name(field, part.name, library.tasks, "task")
        if part.name not in left_out:
            # The stream sets these; in the library's format each dataset has them.
            own = {k: v for k, v in config.items() if k not in ("seed", "size")}
            choices.append(TaskChoice(part.name, part.weight, own))
    total = sum(choice.weight for choice in choices)
    return [
        dataclasses.replace(choice, weight=weight * choice.weight / total)
        for choice in choices
    ]


def build_selection(
    library: LibraryDescription, settings: StreamSettings
) -> tuple[TaskChoice, ...]:
    """Return the choices that settings mean.

    Returns:
        At least one choice, one for each task and its parameters. They are sorted by
        task: the order of names in the settings does not change the draws.

    Raises:
        SettingError: A name is unknown, a weight is not positive, or nothing is left.
    """
    weights = settings.task_weights
    params = settings.task_params
    known = [*library.tasks, MIXTURE]
    left_out = set(_matching("exclude_tasks", settings.exclude_tasks, known))
    names = set(_chosen_names(library, settings)) - left_out
    for field, given in (("task_weights", weights), ("task_params", params)):
        for name in given:
            if name not in known:
                raise unknown_task(field, name, known)
            if name not in names:
                raise SettingError(f"{name!r} is not among the chosen tasks", field)
    choices: list[TaskChoice] = []
    for name in sorted(names):
        weight = float(weights.get(name, 1.0))
        own = params.get(name, {})
        if not (weight > 0 and math.isfinite(weight)):
            place = f"task_weights.{name}"
            raise SettingError(f"a weight must be above 0, found {weight!r}", place)
        if name == MIXTURE:
            choices += _mixture_choices(library, weight, own, left_out)
        else:
            choices.append(TaskChoice(name, weight, dict(own)))
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
