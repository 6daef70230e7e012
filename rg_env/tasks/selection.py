"""Which tasks a run uses, with which parameters and weights.

Pure: settings and the library's description in, a tuple of choices out. Wrong names
end here, with the nearest valid one.

The library's `composite` is a mixture, not a task. Naming it stands for the tasks in
its `datasets` parameter (the library's own format: name, weight, config), or for all
tasks where none are given, and its weight is shared among them by their weights; its
items therefore count for the task that made them. A part may be a mixture itself.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec

from rg_env.errors import SettingError, unknown_name
from rg_env.task_rules.rules import MIXTURE
from rg_env.tasks.library import TASKS, LibraryDescription, is_release_of_list

TaskChoosing = Literal["weighted", "adaptive", "in_turn"]
"""How a run draws among its choices."""

PresetName = Literal["rg-easy", "rg-hard"]
"""The published evaluations."""


@dataclasses.dataclass(frozen=True)
class TaskChoice:
    """One thing a draw can fall on.

    Attributes:
        task: A registered task, never the mixture.
        weight: Its share against the others, positive.
        params: Dataset parameters that differ from the library's defaults.
    """

    task: str
    weight: float = 1.0
    params: Mapping[str, Any] = dataclasses.field(default_factory=dict)


class MixturePart(msgspec.Struct, forbid_unknown_fields=True):
    """One of the `datasets` of a mixture, in the library's format."""

    name: str
    weight: Annotated[float, msgspec.Meta(gt=0)] = 1.0
    config: dict[str, Any] | None = None


def _matching(
    field: str, patterns: Iterable[str], names: Sequence[str], kind: str = "task"
) -> list[str]:
    """Return the names that match the patterns, in the patterns' order, once each."""
    matching: dict[str, None] = {}
    for pattern in patterns:
        matched = fnmatch.filter(names, pattern)
        if not matched:
            raise unknown_name(field, pattern, names, kind)
        matching.update(dict.fromkeys(matched))
    return list(matching)


def _chosen_names(
    library: LibraryDescription,
    tasks: Sequence[str] | None,
    categories: Sequence[str] | None,
) -> list[str]:
    names = list(library.tasks)
    if tasks is None and categories is None:
        return names
    by_category: dict[str, list[str]] = {}
    for name, info in library.tasks.items():
        by_category.setdefault(info.category, []).append(name)
    known = sorted(by_category)
    chosen = [
        name
        for category in _matching("categories", categories or [], known, "category")
        for name in by_category[category]
    ]
    by_name = _matching("tasks", tasks or [], [*names, MIXTURE])
    # A pattern like "*" means tasks.
    chosen += [name for name in by_name if name != MIXTURE or name in (tasks or ())]
    return list(dict.fromkeys(chosen))


def _mixture_choices(
    library: LibraryDescription,
    field: str,
    weight: float,
    params: Mapping[str, Any],
    left_out: Collection[str],
) -> list[TaskChoice]:
    """Expand a mixture into the tasks it stands for, which share its weight."""
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
        if part.name == MIXTURE:
            place = f"{field}.{MIXTURE}"
            choices += _mixture_choices(library, place, part.weight, config, left_out)
        elif part.name not in library.tasks:
            raise unknown_name(field, part.name, [*library.tasks, MIXTURE], "task")
        elif part.name not in left_out:
            # The sampler owns these; in the library's format each dataset has them.
            own = {k: v for k, v in config.items() if k not in ("seed", "size")}
            choices.append(TaskChoice(part.name, part.weight, own))
    total = sum(choice.weight for choice in choices)
    return [
        dataclasses.replace(choice, weight=weight * choice.weight / total)
        for choice in choices
    ]


def _merged(choices: Iterable[TaskChoice]) -> tuple[TaskChoice, ...]:
    """Sort the choices by task, and make one of those with the same parameters."""
    merged: dict[tuple[str, str], TaskChoice] = {}
    for choice in choices:
        key = choice.task, repr(sorted(choice.params.items()))
        if key in merged:
            weight = merged[key].weight + choice.weight
            choice = dataclasses.replace(choice, weight=weight)
        merged[key] = choice
    return tuple(merged[key] for key in sorted(merged))


def build_selection(
    library: LibraryDescription,
    *,
    tasks: Sequence[str] | None = None,
    categories: Sequence[str] | None = None,
    exclude_tasks: Sequence[str] = (),
    task_weights: Mapping[str, float] | None = None,
    task_params: Mapping[str, Mapping[str, Any]] | None = None,
    mixture_field: str = f"task_params.{MIXTURE}",
) -> tuple[TaskChoice, ...]:
    """Turn the settings into the choices of the sampler.

    Args:
        library: What the installed library offers.
        tasks: Names or patterns (`*_sorting`); None with no categories means all.
        categories: The library's categories; added to `tasks`.
        exclude_tasks: Names or patterns taken away again, also from the mixture.
        task_weights: Task to weight; 1.0 where not given.
        task_params: Task to dataset parameters; those of `composite` hold `datasets`.
        mixture_field: The setting that the parameters of `composite` come from.

    Returns:
        At least one choice, sorted by task, so that the order in which the settings
        name them has no part in what is drawn; one for each task and its parameters.

    Raises:
        SettingError: A name is unknown, a weight is not positive, or nothing is left.
    """
    known = [*library.tasks, MIXTURE]
    left_out = set(_matching("exclude_tasks", exclude_tasks, known))
    chosen = _chosen_names(library, tasks, categories)
    names = [name for name in chosen if name not in left_out]
    weights, params = task_weights or {}, task_params or {}
    for field, given in (("task_weights", weights), ("task_params", params)):
        for name in given:
            if name not in known:
                raise unknown_name(field, name, known, "task")
            if name not in names:
                raise SettingError(f"{name!r} is not among the chosen tasks", field)
    choices: list[TaskChoice] = []
    for name in names:
        weight, own = float(weights.get(name, 1.0)), params.get(name, {})
        if not (weight > 0 and math.isfinite(weight)):
            place = f"task_weights.{name}"
            raise SettingError(f"a weight must be above 0, found {weight!r}", place)
        if name == MIXTURE:
            choices += _mixture_choices(library, mixture_field, weight, own, left_out)
        else:
            choices.append(TaskChoice(name, weight, dict(own)))
    if not choices:
        raise SettingError(
            "nothing is left to sample; choose a task or exclude fewer", "tasks"
        )
    return _merged(choices)


def refuse_unlisted(names_by_field: Mapping[str, Iterable[str]]) -> None:
    """Reject a name or pattern in settings that no task of `library_tasks.json` has.

    The library's import takes seconds, for which nobody wants to wait who has mistyped
    a task. Where another release is installed, nothing is rejected.
    """
    known = [*TASKS, MIXTURE]
    for field, names in names_by_field.items():
        for name in names:
            if not fnmatch.filter(known, name) and is_release_of_list():
                raise unknown_name(f"env.{field}", name, known, "task")
