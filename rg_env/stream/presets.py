"""Presets: the very items that the library's authors evaluated models on.

Item i of a task is `create_dataset(task, seed=45, size=50, **params)[i]`.
`published_settings.json` has the parameters, and the tasks whose questions have changed
since, because the library has.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rg_env.errors import SettingError
from rg_env.stream.item import Item
from rg_env.task_rules.table import rules_of

logger = logging.getLogger(__name__)

TABLE = Path(__file__).with_name("published_settings.json")
# Seed and size of every published data set.
SEED = 45
SIZE = 50


@dataclasses.dataclass(frozen=True)
class Preset:
    """A published evaluation."""

    name: str
    # Task to the dataset parameters that differ from the library's defaults.
    params: Mapping[str, Mapping[str, Any]]
    changed: frozenset[str]  # tasks with other questions than the published ones

    def items(self, tasks: Iterable[str], template: Item) -> list[Sequence[Item]]:
        """Return the items of those of the tasks that it has, one attempt at each.

        `template` has the other fields of the items.

        Raises:
            SettingError: It has none of the tasks.
        """
        names = sorted(self.params.keys() & set(tasks))
        if not names:
            raise SettingError(f"{self.name} has none of the chosen tasks")
        if changed := [task for task in names if task in self.changed]:
            logger.warning(
                "because the library has changed, some questions are not those of"
                " %s: %s",
                self.name,
                ", ".join(changed),
            )
        return [
            [dataclasses.replace(template, **self._fields(task, number))]
            for task in names
            for number in range(SIZE)
        ]

    def _fields(self, task: str, number: int) -> dict[str, Any]:
        # Most entries depend on the sum of seed and index alone.
        is_whole = rules_of(task).is_rebuilt
        return {
            "task": task,
            "params": self.params[task],
            "seed": SEED if is_whole else SEED + number,
            "index": number,
            "size": SIZE if is_whole else 1,
            "published": True,
        }


@functools.cache
def load_preset(name: str) -> Preset:
    """Return a preset; SettingError if there is none of that name.

    Example:
        >>> len(load_preset("rg-hard").items(["gcd"], Item("")))
        50
    """
    rows = json.loads(TABLE.read_text(encoding="utf-8"))["presets"]
    if name not in rows:
        raise SettingError(f"one of {', '.join(rows)}, found {name!r}", "preset")
    row = rows[name]
    return Preset(name, row["params"], frozenset(row["changed"]))
