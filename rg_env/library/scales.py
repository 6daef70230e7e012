"""The scale of difficulty, 0 to 1, that a task has: its steps and what each sets.

A scale is made of the library's own curriculum. 0 is its lowest usable level and 1
its highest; levels that cannot be used are skipped, each with its reason, and
neighbouring levels that set the same are one step. The steps stand at equal
distances. Between two of them the upper one is taken with the fraction as its
probability, so that the scale is continuous.

`scales.json` holds the scales of one version of the library, as found by probing
every level (`python -m tools.make_scales`); each is valid while the source of its task
is the same. The scale of a user's own task has every level that its config accepts:
what is skipped must not depend on how busy a machine is.
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

from rg_env.library.datasets import OwnTaskError, blaming
from rg_env.library.registry import cause_of, defaults_of, load_factory
from rg_env.task_rules.table import rules_of

TABLE = Path(__file__).with_name("scales.json")


@dataclasses.dataclass(frozen=True)
class Step:
    """A point of a scale."""

    levels: tuple[int, ...]  # of the library's curriculum, ascending
    params: Mapping[str, Any]  # that differ from the library's defaults
    item_ms: float | None  # median time to make one, None where it was never measured


@dataclasses.dataclass(frozen=True)
class SkippedLevel:
    """A level of the library's curriculum that is not on the scale, and why."""

    level: int
    reason: str


@dataclasses.dataclass(frozen=True)
class Scale:
    """What the level of a task can be."""

    task: str
    steps: tuple[Step, ...]  # easiest first, at least one
    skipped: tuple[SkippedLevel, ...] = ()  # the levels that are not on it, ascending
    digest: str = ""  # `curriculum_digest` of the library that it was made of

    @property
    def is_dead(self) -> bool:
        """Whether the items do not change with the level; the note says why."""
        return len(self.steps) == 1 or bool(rules_of(self.task).fixed_level)

    @property
    def default_level(self) -> float | None:
        """Where the library's default parameters lie in [0, 1], None for nowhere."""
        places = [number for number, step in enumerate(self.steps) if not step.params]
        return self.level_of(places[0]) if places else None

    @property
    def note(self) -> str:
        """What is worth knowing, "" if nothing."""
        repair = rules_of(self.task).level_repair
        notes = []
        if self.is_dead:
            why = rules_of(self.task).fixed_level or "one step is usable"
            notes.append(f"the items do not change with the level: {why}")
        if repair:
            notes.append(f"repaired: {repair.reason}")
        if self.default_level is None:
            notes.append("the default config is no point of the curriculum")
        return "; ".join(notes)

    def step_at(self, level: float, mix: float) -> Step:
        """Return the step of a level in [0, 1].

        Between two steps it is the upper one where `mix`, uniform in [0, 1), is below
        the fraction.
        """
        if not 0.0 <= level <= 1.0:
            raise ValueError(f"{self.task}: a level lies in [0, 1], found {level!r}")
        place = level * (len(self.steps) - 1)
        lower = math.floor(place)
        return self.steps[lower + (mix < place - lower)]

    def level_of(self, number: int) -> float:
        """Return where the step of a number, from 0, stands on the scale."""
        return number / (len(self.steps) - 1) if len(self.steps) > 1 else 0.0


@dataclasses.dataclass(frozen=True)
class ShippedScales:
    """The table of scales, by task, and the version of the library it was made of."""

    library_version: str
    scales: Mapping[str, Scale]


def load_shipped(path: Path = TABLE) -> ShippedScales:
    """Read a table that `tools/make_scales.py` wrote."""
    table = json.loads(path.read_text(encoding="utf-8"))
    rows = {task: {"task": task, **row} for task, row in table["tasks"].items()}
    scales = msgspec.convert(rows, dict[str, Scale])
    return ShippedScales(table["library_version"], scales)


# -- made of a curriculum, in workers --------------------------------------------------

CurriculumLevel = tuple[dict[str, Any], str | None]
"""What a level of a curriculum sets, and why it is not used, None if it is."""


def _curriculum_level(
    task: str, number: int, overrides: Mapping[str, Any]
) -> CurriculumLevel:
    factory = load_factory()
    config_cls = factory.DATASETS[task][1]
    defaults = defaults_of(config_cls)
    curriculum = factory.create_curriculum(task)
    curriculum.set_global_level(number)
    params = dict(overrides)
    try:
        # Without a context the library takes its mode "inclusive".
        at_level = curriculum.generate_configuration({"seed": 0, "size": 1})
        config = dataclasses.replace(at_level, **overrides)
        values = {f.name: getattr(config, f.name) for f in dataclasses.fields(config)}
        params = {
            name: value
            for name, value in values.items()
            if name not in ("seed", "size") and value != defaults.get(name)
        }
        checked = config_cls(seed=0, size=1, **params)
        if hasattr(checked, "validate"):
            checked.validate()
    except Exception as error:  # noqa: BLE001 - foreign code on values it may refuse
        return params, f"its config refuses it: {cause_of(error)}"
    return params, rules_of(task).unused_levels.get(number)


def curriculum_levels(task: str, repaired: bool = True) -> list[CurriculumLevel]:
    """Return what every level of the library's curriculum sets, lowest first.

    `repaired` applies the level repair of the task's rules.
    """
    factory = load_factory()
    if task not in factory.CURRICULA:
        return []
    attributes = factory.create_curriculum(task).attributes.values()
    count = max((len(attribute.levels) for attribute in attributes), default=0)
    repair = rules_of(task).level_repair if repaired else None
    changes = repair.overrides if repair else {}
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
    levels = curriculum_levels(task, repaired=False)
    texts += [repr(sorted(params.items())) for params, _ in levels]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def steps_of(
    levels: Sequence[CurriculumLevel],
) -> tuple[list[Step], list[SkippedLevel]]:
    """Return the steps that some levels make, and the levels that are not used."""
    steps: list[Step] = []
    skipped: list[SkippedLevel] = []
    for number, (params, why_unused) in enumerate(levels):
        if why_unused is not None:
            skipped.append(SkippedLevel(number, why_unused))
            continue
        last = steps[-1] if steps else None
        if last and last.levels[-1] == number - 1 and last.params == params:
            steps[-1] = dataclasses.replace(last, levels=(*last.levels, number))
        else:
            steps.append(Step((number,), params, None))
    return steps, skipped


def own_scale(task: str) -> Scale | str:
    """Return the scale of a user's own task, or why it has none.

    Raises OwnTaskError if its curriculum raises or none of its levels can be used.
    """
    with blaming():
        levels = curriculum_levels(task)
    if not levels or rules_of(task).fixed_level:
        return rules_of(task).fixed_level or "no curriculum is registered with it"
    steps, skipped = steps_of(levels)
    if not steps:
        raise OwnTaskError(f"level 0: {skipped[0].reason}")
    return Scale(task, tuple(steps), tuple(skipped))
