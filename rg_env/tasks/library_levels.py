"""What the levels of the library's curricula set, and a digest that tells changes.

The scales of the library's own tasks were found by probing every level; see scales.py.
That of a user's own task has every level that its config accepts: what is left out must
not depend on how busy a machine is.
"""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rg_env.task_rules.table import rules_of
from rg_env.tasks import own_tasks
from rg_env.tasks.library_import import load_factory
from rg_env.tasks.scales import Scale, SkippedLevel, Step


@dataclasses.dataclass(frozen=True)
class CurriculumLevel:
    """What a level of the library's curriculum sets, and why it is not used."""

    params: Mapping[str, Any]
    why_unused: str | None


def _params_of(config: Any, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a config that differ from the defaults."""
    found = {f.name: getattr(config, f.name) for f in dataclasses.fields(config)}
    return {
        name: value
        for name, value in found.items()
        if name not in ("seed", "size") and value != defaults.get(name)
    }


def _defaults(config_cls: Any) -> dict[str, Any]:
    """Return the values of a config's parameters where none are given."""
    found = {}
    for field in dataclasses.fields(config_cls):
        if field.default is not dataclasses.MISSING:
            found[field.name] = field.default
        elif field.default_factory is not dataclasses.MISSING:
            found[field.name] = field.default_factory()
    return found


def _curriculum_level(
    task: str, rg_level: int, overrides: Mapping[str, Any]
) -> CurriculumLevel:
    factory = load_factory()
    config_cls = factory.DATASETS[task][1]
    defaults = _defaults(config_cls)
    curriculum = factory.create_curriculum(task)
    curriculum.set_global_level(rg_level)
    params = dict(overrides)
    try:
        # Without a context the library takes its mode "inclusive".
        made = curriculum.generate_configuration({"seed": 0, "size": 1})
        params = _params_of(dataclasses.replace(made, **overrides), defaults)
        config = config_cls(seed=0, size=1, **params)
        if hasattr(config, "validate"):
            config.validate()
    except Exception as error:  # noqa: BLE001 - foreign code on values it may refuse
        if own_tasks.is_own(task):
            refusal = f"its config refuses it: {own_tasks.cause_of(error)}"
        else:
            refusal = f"reasoning-gym refuses it: {str(error) or type(error).__name__}"
        return CurriculumLevel(params, refusal)
    return CurriculumLevel(params, rules_of(task).unused_levels.get(rg_level))


def curriculum_levels(
    task: str, overrides: Mapping[int, Mapping[str, Any]] | None = None
) -> list[CurriculumLevel]:
    """Return what every level of the library's curriculum sets, lowest first.

    `overrides` has, by level, parameters that are set instead of the curriculum's.
    """
    factory = load_factory()
    if task not in factory.CURRICULA:
        return []
    attributes = factory.create_curriculum(task).attributes.values()
    count = max((len(attribute.levels) for attribute in attributes), default=0)
    changes = overrides or {}
    return [_curriculum_level(task, i, changes.get(i, {})) for i in range(count)]


def repaired_levels(task: str) -> list[CurriculumLevel]:
    """Return the same with the level repair of the task's rules."""
    repair = rules_of(task).level_repair
    return curriculum_levels(task, repair.overrides if repair else None)


def curriculum_digest(task: str) -> str:
    """Return the digest of what the levels of a task depend on.

    It covers the modules of its dataset, config and curriculum and what every level
    sets, so that a change of the library's base classes shows as well. It does not
    cover the modules that those import.
    """
    factory = load_factory()
    classes = [*factory.DATASETS[task], factory.CURRICULA.get(task)]
    modules = {cls.__module__ for cls in classes if cls is not None}
    texts = [inspect.getsource(sys.modules[name]) for name in sorted(modules)]
    texts += [repr(sorted(v.params.items())) for v in curriculum_levels(task)]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


# -- a scale of them -------------------------------------------------------------------


def unused_levels(levels: Sequence[CurriculumLevel]) -> list[SkippedLevel]:
    """Return the levels that are refused or that a row leaves out, with the reasons."""
    return [
        SkippedLevel(number, level.why_unused)
        for number, level in enumerate(levels)
        if level.why_unused is not None
    ]


def steps_of(levels: Sequence[CurriculumLevel]) -> list[tuple[int, ...]]:
    """Group the levels that are used; neighbours that set the same stand together."""
    groups: list[tuple[int, ...]] = []
    for number, level in enumerate(levels):
        if level.why_unused is not None:
            continue
        last = groups[-1] if groups else ()
        if last and last[-1] == number - 1 and levels[last[-1]].params == level.params:
            groups[-1] = (*last, number)
        else:
            groups.append((number,))
    return groups


def _note(task: str, steps: Sequence[Step], default_level: float | None) -> str:
    notes = []
    rules = rules_of(task)
    if rules.fixed_level:
        notes.append(f"the items do not change with the level: {rules.fixed_level}")
    elif len(steps) == 1:
        notes.append("the items do not change with the level: one step is usable")
    if rules.level_repair:
        notes.append(f"repaired: {rules.level_repair.reason}")
    if default_level is None:
        notes.append("the default config is no point of the curriculum")
    return "; ".join(notes)


def build_scale(
    task: str, steps: Sequence[Step], skipped: Sequence[SkippedLevel]
) -> Scale:
    """Put a scale together from its steps, easiest first, at least one."""
    scale = Scale(
        task=task,
        steps=tuple(steps),
        skipped=tuple(sorted(skipped, key=lambda skip: skip.level)),
        is_dead_knob=bool(rules_of(task).fixed_level),
    )
    places = [scale.level_of(n) for n, step in enumerate(steps) if not step.params]
    default_level = places[0] if places else None
    note = _note(task, steps, default_level)
    return dataclasses.replace(scale, note=note, default_level=default_level)


def own_scale(task: str) -> Scale | str:
    """Return the scale of a user's own task, or why it has none.

    Raises:
        OwnTaskError: Its curriculum raises, or none of its levels can be used.
    """
    with own_tasks.blaming():
        levels = repaired_levels(task)
    if not levels:
        return rules_of(task).fixed_level or "no curriculum is registered with it"
    skipped = unused_levels(levels)
    steps = [Step(group, levels[group[0]].params, None) for group in steps_of(levels)]
    if not steps:
        raise own_tasks.OwnTaskError(f"level 0: {skipped[0].reason}")
    return build_scale(task, steps, skipped)
