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
from typing import Any, Literal

from rg_env.errors import SettingError, unknown_name
from rg_env.task_rules.rules import MIXTURE
from rg_env.tasks.library import LibraryDescription
from rg_env.tasks.library_import import TASKS

_MIXTURE_PART_KEYS = ("name", "weight", "config")


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


def _matching(
    field: str, patterns: Iterable[str], names: Sequence[str], kind: str = "task"
) -> list[str]:
    """Return the names that match the patterns, in the patterns' order, once each."""
    found: dict[str, None] = {}
    for pattern in patterns:
        matched = fnmatch.filter(names, pattern)
        if not matched:
            raise unknown_name(field, pattern, names, kind)
        found.update(dict.fromkeys(matched))
    return list(found)


def _chosen_names(
    library: LibraryDescription,
    tasks: Sequence[str] | None,
    categories: Sequence[str] | None,
    left_out: Collection[str],
) -> list[str]:
    names = list(library.tasks)
    by_category: dict[str, list[str]] = {}
    for name, info in library.tasks.items():
        by_category.setdefault(info.category, []).append(name)
    wanted = [
        name
        for category in _matching(
            "categories", categories or [], sorted(by_category), "category"
        )
        for name in by_category[category]
    ]
    wanted += _matching("tasks", tasks or [], [*names, MIXTURE])
    if tasks is None and categories is None:
        wanted = names
    if tasks is not None and MIXTURE in wanted and MIXTURE not in tasks:
        wanted.remove(MIXTURE)  # a pattern like "*" means tasks
    return [name for name in dict.fromkeys(wanted) if name not in left_out]


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
    parts = [
        part
        for part in _mixture_parts(
            library, f"{field}.datasets", params.get("datasets"), left_out
        )
        if part.task not in left_out
    ]
    total = sum(part.weight for part in parts)
    return [
        dataclasses.replace(part, weight=weight * part.weight / total) for part in parts
    ]


def _mixture_parts(
    library: LibraryDescription, field: str, specs: Any, left_out: Collection[str]
) -> list[TaskChoice]:
    if specs is None:
        return [TaskChoice(name) for name in library.tasks]
    if not isinstance(specs, list) or not specs:
        raise SettingError(f"a list of name, weight and config, found {specs!r}", field)
    parts = [_mixture_part(library, field, spec, left_out) for spec in specs]
    return [choice for part in parts for choice in part]


def _mixture_part(
    library: LibraryDescription, field: str, spec: Any, left_out: Collection[str]
) -> list[TaskChoice]:
    name = spec.get("name") if isinstance(spec, Mapping) else None
    if not isinstance(name, str):
        raise SettingError(f"each needs a name, found {spec!r}", field)
    if name not in library.tasks and name != MIXTURE:
        raise unknown_name(field, name, [*library.tasks, MIXTURE], "task")
    field = f"{field}.{name}"
    for key in spec:
        if key not in _MIXTURE_PART_KEYS:
            raise unknown_name(field, str(key), _MIXTURE_PART_KEYS, "key")
    config = spec.get("config") or {}
    if not isinstance(config, Mapping):
        raise SettingError(f"config holds parameters by name, found {config!r}", field)
    weight = _positive(field, spec.get("weight", 1.0))
    if name == MIXTURE:
        if not config.get("datasets"):
            raise SettingError("a mixture in a mixture needs its datasets", field)
        return _mixture_choices(library, field, weight, config, left_out)
    # The sampler owns these two; in the library's own format each dataset has them.
    params = {k: v for k, v in config.items() if k not in ("seed", "size")}
    return [TaskChoice(name, weight, params)]


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


def _positive(field: str, weight: Any) -> float:
    is_number = isinstance(weight, (int, float)) and not isinstance(weight, bool)
    if not is_number or not math.isfinite(weight) or weight <= 0:
        raise SettingError(f"a weight must be above 0, found {weight!r}", field)
    return float(weight)


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
    names = _chosen_names(library, tasks, categories, left_out)
    weights, params = dict(task_weights or {}), dict(task_params or {})
    for field, given in (("task_weights", weights), ("task_params", params)):
        for name in given:
            if name not in known:
                raise unknown_name(field, name, known, "task")
            if name not in names:
                raise SettingError(f"{name!r} is not among the chosen tasks", field)
    choices: list[TaskChoice] = []
    for name in names:
        weight = _positive(f"task_weights.{name}", weights.get(name, 1.0))
        if name == MIXTURE:
            mixed = params.get(name, {})
            choices += _mixture_choices(library, mixture_field, weight, mixed, left_out)
        else:
            choices.append(TaskChoice(name, weight, dict(params.get(name, {}))))
    if not choices:
        raise SettingError(
            "nothing is left to sample; choose a task or exclude fewer", "tasks"
        )
    return _merged(choices)


TaskChoosing = Literal["weighted", "adaptive", "in_turn"]
PresetName = Literal["rg-easy", "rg-hard"]
"""How a run draws among its choices."""


def refuse_unlisted(names_by_field: Mapping[str, Iterable[str]]) -> None:
    """Reject a name or pattern in settings that no task of `library_tasks.json` has.

    The library's import takes seconds, for which nobody wants to wait who has mistyped
    a task. Only where `is_release_of_list` does this say anything.
    """
    known = [*TASKS, MIXTURE]
    for field, names in names_by_field.items():
        for name in names:
            if not fnmatch.filter(known, name):
                raise unknown_name(f"env.{field}", name, known, "task")
