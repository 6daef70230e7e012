"""What a trivial baseline scores at a task and level: answers without solving.

Where an answer space is small, guessing scores. `baselines.json` says how much, for one
version of the library: measured by `python -m tools.make_baselines` at the
library's defaults and at every step of the shipped scales.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec

TABLE = Path(__file__).with_name("baselines.json")

EASILY_GUESSED = 0.4
"""Where a trivial baseline scores more, a model's score says little."""


@dataclasses.dataclass(frozen=True)
class Baseline:
    """What the best trivial baseline scores at one task and level.

    `params` are the dataset parameters that differ from the library's defaults, `value`
    the mean score of `items` items, in [0, 0.95], and `error` its standard error.
    """

    params: Mapping[str, Any]
    value: float
    error: float
    items: int
    strategy: str


@dataclasses.dataclass(frozen=True)
class TaskBaselines:
    """What was measured at one task."""

    digest: str  # of the library's sources
    # The sum that all strategies score on a few items shows whether scorers changed.
    check_score: float = 0.0
    baselines: tuple[Baseline, ...] = ()  # those that are worth shipping


@dataclasses.dataclass(frozen=True)
class Baselines:
    """The baselines of some tasks, measured with one version of the library."""

    library_version: str
    by_task: Mapping[str, TaskBaselines]


def load_shipped(path: Path = TABLE) -> Baselines:
    """Read a table that `tools/make_baselines.py` wrote."""
    table = json.loads(path.read_text(encoding="utf-8"))
    by_task = msgspec.convert(table["tasks"], dict[str, TaskBaselines])
    return Baselines(table["library_version"], by_task)


def guessing_notes(tasks: Collection[str]) -> list[str]:
    """Return a sentence that names those of some tasks that can be guessed, if any."""
    guessed = [
        task
        for task, row in sorted(load_shipped().by_task.items())
        if task in tasks and any(b.value > EASILY_GUESSED for b in row.baselines)
    ]
    note = (
        f"scores say little in {', '.join(guessed)}: answers without solving score more"
        f" than {EASILY_GUESSED} at a level of each (docs/trivial_baselines.md)"
    )
    return [note] if guessed else []
