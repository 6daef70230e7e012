"""What the levels of the library's curricula set, and a digest that tells changes."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import sys
from collections.abc import Mapping
from typing import Any

from rg_env.tasks.library_import import load_factory


@dataclasses.dataclass(frozen=True)
class CurriculumLevel:
    """What a level of the library's curriculum sets, and why the library refuses it."""

    params: Mapping[str, Any]
    refusal: str | None


def _params_of(config: Any, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a config that differ from the defaults."""
    found = {f.name: getattr(config, f.name) for f in dataclasses.fields(config)}
    return {
        name: value
        for name, value in found.items()
        if name not in ("seed", "size") and value != defaults[name]
    }


def _curriculum_level(
    task: str, rg_level: int, overrides: Mapping[str, Any]
) -> CurriculumLevel:
    factory = load_factory()
    config_cls = factory.DATASETS[task][1]
    defaults = vars(config_cls())
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
        return CurriculumLevel(params, str(error) or type(error).__name__)
    return CurriculumLevel(params, None)


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
    count = max(len(attribute.levels) for attribute in attributes)
    changes = overrides or {}
    return [_curriculum_level(task, i, changes.get(i, {})) for i in range(count)]


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
