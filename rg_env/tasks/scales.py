"""The scale of difficulty, 0 to 1, that a task has: its steps and what each sets.

A scale is made of the library's own curriculum. 0 is its lowest usable level and 1
its highest; levels that cannot be used are skipped, each with its reason, and
neighbouring levels that set the same are one step. The steps stand at equal
distances. Between two of them the upper one is taken with the fraction as its
probability, so that the scale is continuous.

`scales.json` holds the scales of one version of the library, as found by probing
every level (`python -m tools.make_scales`). What to do where the installed
library is another one is decided in rg_env/items/installed_library.py.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

TABLE = Path(__file__).with_name("scales.json")


@dataclasses.dataclass(frozen=True)
class Step:
    """A point of a scale.

    Attributes:
        levels: The levels of the library's curriculum that it stands for, ascending.
        params: Dataset parameters that differ from the library's defaults.
        item_ms: Median time to make an item, None where it was never measured.
    """

    levels: tuple[int, ...]
    params: Mapping[str, Any]
    item_ms: float | None


@dataclasses.dataclass(frozen=True)
class SkippedLevel:
    """A level of the library's curriculum that is not on the scale, and why."""

    level: int
    reason: str


@dataclasses.dataclass(frozen=True)
class Scale:
    """What the level of a task can be.

    Attributes:
        steps: Easiest first, at least one.
        skipped: The levels that are not on it, ascending.
        note: What is worth knowing, "" if nothing.
        default_level: Where the library's default parameters lie, in [0, 1]; None
            where they are no point of the curriculum.
        is_dead_knob: Whether the generator ignores the parameters that the steps set.
    """

    task: str
    steps: tuple[Step, ...]
    skipped: tuple[SkippedLevel, ...] = ()
    note: str = ""
    default_level: float | None = None
    is_dead_knob: bool = False

    @property
    def is_dead(self) -> bool:
        """Whether the items do not change with the level; the note says why."""
        return self.is_dead_knob or len(self.steps) == 1

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
    """The table of scales, and digests of the library's sources it was made of."""

    library_version: str
    scales: Mapping[str, Scale]
    digests: Mapping[str, str]


def load_shipped(path: Path = TABLE) -> ShippedScales:
    """Read a table that `tools/make_scales.py` wrote."""
    table = json.loads(path.read_text(encoding="utf-8"))
    rows = {task: {"task": task, **row} for task, row in table["tasks"].items()}
    return ShippedScales(
        library_version=table["library_version"],
        scales=msgspec.convert(rows, dict[str, Scale]),
        digests={task: row["digest"] for task, row in rows.items()},
    )
