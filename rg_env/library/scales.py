"""The scale of difficulty of a task, from 0 to 1, and the parameters of its steps.

A scale is made from the levels of the library's curriculum. 0 is the lowest usable
level and 1 the highest. Unusable levels are skipped with a reason, and neighbouring
levels with the same parameters are one step. The steps are equally far apart. Between
two steps, the upper one is taken with a probability that grows from 0 to 1, so the
scale is continuous.

`scales.json` has the scales of one version of the library; `python -m
tools.make_scales` probes every level and writes it. A scale is valid while the source
of its task is the same, or that of another version that was probed with equal results.
The scale of a user's own task has every level that its config accepts, because probing
would depend on the load of the machine.
"""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rg_env.library.datasets import OwnTaskError, own_task_errors
from rg_env.library.registry import cause_of, check_config, defaults_of, load_factory
from rg_env.task_rules.table import rules_of

TABLE = Path(__file__).with_name("scales.json")


@dataclasses.dataclass(frozen=True)
class Step:
    """A point of a scale."""

    levels: tuple[int, ...]  # levels of the library's curriculum, ascending
    params: Mapping[str, Any]  # only those that differ from the library's defaults
    item_ms: float | None  # median time to make an item, None if it was not measured


@dataclasses.dataclass(frozen=True)
class SkippedLevel:
    """A level of the library's curriculum that is not on the scale, and why."""

    level: int
    reason: str


@dataclasses.dataclass(frozen=True)
class Scale:
    """The scale of a task.

    Example:
        >>> steps = (Step((0,), {"max_value": 9}, 1.0), Step((1,), {}, 2.0))
        >>> scale = Scale("gcd", steps)
        >>> scale.step_at(0.5, mix=0.4).levels, scale.step_at(0.5, mix=0.6).levels
        ((1,), (0,))
        >>> scale.default_level
        1.0
    """

    task: str
    steps: tuple[Step, ...]  # easiest first, at least one
    skipped: tuple[SkippedLevel, ...] = ()  # ascending
    # `curriculum_digest` in each version of the library that was probed.
    digests: tuple[str, ...] = ()

    @property
    def is_constant(self) -> bool:
        """Whether the items do not change with the level; the note says why."""
        return len(self.steps) == 1 or bool(rules_of(self.task).fixed_level)

    @property
    def default_level(self) -> float | None:
        """The level of the library's default parameters, None if no step has them."""
        for index, step in enumerate(self.steps):
            if not step.params:
                return self.level_of(index)
        return None

    @property
    def note(self) -> str:
        """Remarks about the scale for a user, or ""."""
        rules = rules_of(self.task)
        notes = []
        if self.is_constant:
            reason = rules.fixed_level or "one step is usable"
            notes.append(f"the items do not change with the level: {reason}")
        if rules.level_repair:
            notes.append(f"repaired: {rules.level_repair.reason}")
        if self.default_level is None:
            notes.append("the default config is not a level of the curriculum")
        return "; ".join(notes)

    def step_at(self, level: float, mix: float) -> Step:
        """Return the step of a level in [0, 1].

        Between two steps, it is the upper one if `mix`, which is uniform in [0, 1), is
        below the fraction of the way from the lower one.
        """
        if not 0.0 <= level <= 1.0:
            raise ValueError(f"{self.task}: a level lies in [0, 1], found {level!r}")
        position = level * (len(self.steps) - 1)
        lower = math.floor(position)
        is_upper = mix < position - lower
        return self.steps[lower + 1 if is_upper else lower]

    def level_of(self, index: int) -> float:
        """Return the level of a step by its index."""
        return index / (len(self.steps) - 1) if len(self.steps) > 1 else 0.0


@dataclasses.dataclass(frozen=True)
class ShippedScales:
    """The scales by task, and the version of the library that they were made for."""

    library_version: str
    scales: Mapping[str, Scale]


def load_shipped() -> ShippedScales:
    """Load the table that `tools/make_scales.py` wrote."""
    table = json.loads(TABLE.read_bytes())
    rows = {task: {"task": task, **row} for task, row in table["tasks"].items()}
    scales = msgspec.convert(rows, dict[str, Scale])
    return ShippedScales(table["library_version"], scales)


# -- from a curriculum, in workers -----------------------------------------------------

CurriculumLevel = tuple[dict[str, Any], str | None]
"""The parameters of a level, and the reason why it is not used or None."""


def _curriculum_level(
    task: str, level: int, overrides: Mapping[str, Any]
) -> CurriculumLevel:
    factory = load_factory()
    defaults = defaults_of(factory.DATASETS[task][1])
    curriculum = factory.create_curriculum(task)
    curriculum.set_global_level(level)
    params = dict(overrides)
    try:
        # The library's default mode is "inclusive".
        at_level = curriculum.generate_configuration({"seed": 0, "size": 1})
        config = dataclasses.replace(at_level, **overrides)
        values = {f.name: getattr(config, f.name) for f in dataclasses.fields(config)}
        params = {
            name: value
            for name, value in values.items()
            if name not in ("seed", "size") and value != defaults.get(name)
        }
        check_config(task, {"seed": 0, "size": 1, **params})
    except Exception as error:  # noqa: BLE001 - foreign code on values it may refuse
        return params, f"its config refuses it: {cause_of(error)}"
    return params, rules_of(task).unused_levels.get(level)


def curriculum_levels(task: str, repaired: bool = True) -> list[CurriculumLevel]:
    """Return every level of the library's curriculum, the lowest first.

    If `repaired` is true, the level repair of the task's rules is applied.
    """
    factory = load_factory()
    if task not in factory.CURRICULA:
        return []
    attributes = factory.create_curriculum(task).attributes.values()
    count = max((len(attribute.levels) for attribute in attributes), default=0)
    repair = rules_of(task).level_repair if repaired else None
    changes = repair.overrides if repair else {}
    return [_curriculum_level(task, n, changes.get(n, {})) for n in range(count)]


def curriculum_digest(task: str) -> str:
    """Return a digest of the source and the levels of a task.

    It covers the modules of its dataset, config and curriculum, and the parameters of
    every level, which change with the library's base classes. It does not cover the
    modules that these import.
    """
    factory = load_factory()
    classes = [*factory.DATASETS[task], factory.CURRICULA.get(task)]
    modules = {cls.__module__ for cls in classes if cls}
    texts = [inspect.getsource(sys.modules[name]) for name in sorted(modules)]
    levels = curriculum_levels(task, repaired=False)
    texts += [repr(sorted(params.items())) for params, _ in levels]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def steps_of(
    levels: Sequence[CurriculumLevel],
) -> tuple[list[Step], list[SkippedLevel]]:
    """Return the steps of a curriculum, and the levels that are not used."""
    steps: list[Step] = []
    skipped: list[SkippedLevel] = []
    for level, (params, reason) in enumerate(levels):
        if reason is not None:
            skipped.append(SkippedLevel(level, reason))
            continue
        last = steps[-1] if steps else None
        if last and last.levels[-1] == level - 1 and last.params == params:
            steps[-1] = dataclasses.replace(last, levels=(*last.levels, level))
        else:
            steps.append(Step((level,), params, None))
    return steps, skipped


def own_scale(task: str) -> Scale | str:
    """Return the scale of a user's own task, or the reason why it has none.

    Raises:
        OwnTaskError: Its curriculum raises, or none of its levels can be used.
    """
    with own_task_errors():
        levels = curriculum_levels(task)
    fixed_level = rules_of(task).fixed_level
    if not levels or fixed_level:
        return fixed_level or "no curriculum is registered with it"
    steps, skipped = steps_of(levels)
    if not steps:
        raise OwnTaskError(f"level 0: {skipped[0].reason}")
    return Scale(task, tuple(steps), tuple(skipped))
