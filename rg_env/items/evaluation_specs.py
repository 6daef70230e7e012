"""Evaluation items before they are made: ours, and those of the published evaluations.

Ours are of the library's defaults or of a level, with seeds that `eval_seed` decides.
A preset has the very items that the library's authors evaluated models on: item i of a
task is `create_dataset(task, seed=45, size=50, **params)[i]`. `published_settings.json`
holds the parameters, and which tasks have other questions by now, since the library
has changed; `tools/make_published_settings.py` writes it.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rg_env.items.item import Item
from rg_env.task_rules.table import rules_of
from rg_env.tasks.difficulty import NO_LEVELS, Difficulty
from rg_env.tasks.sampler import MAX_ATTEMPTS, evaluation_seed
from rg_env.tasks.selection import TaskChoice

TABLE = Path(__file__).with_name("published_settings.json")
SEED, SIZE = 45, 50
"""Seed and size of every published data set."""


Attempts = Sequence[Item]
"""What may become one evaluation item: the first of these whose entry can be used."""


def evaluation_specs(
    choices: Sequence[TaskChoice],
    samples_per_task: int,
    eval_seed: int,
    difficulty: Difficulty = NO_LEVELS,
    level: float | None = None,
) -> list[Attempts]:
    """Return the evaluation items of some choices, so many of each.

    They are at `level` where their task has a scale. With None they are of the
    library's default parameters, so that runs whose levels move can be compared; a
    task whose level is fixed is evaluated at that level.
    """

    def attempt_at(choice: TaskChoice, number: int, attempt: int) -> Item:
        task, own = choice.task, difficulty.fixed_level(choice.task)
        if level is not None and task in difficulty.scales:
            own = level
        seed = evaluation_seed(eval_seed, task, choice.params, number, attempt)
        params = difficulty.params_at(task, own, seed) | dict(choice.params)
        return Item(task, params, seed, own, number)

    return [
        [attempt_at(choice, number, attempt) for attempt in range(MAX_ATTEMPTS)]
        for choice in choices
        for number in range(samples_per_task)
    ]


@dataclasses.dataclass(frozen=True)
class Preset:
    """A published evaluation.

    Attributes:
        params: Task to the dataset parameters that differ from the library's defaults.
        changed: Tasks of which not all questions are the published ones.
    """

    params: Mapping[str, Mapping[str, Any]]
    changed: frozenset[str]

    def specs(self, tasks: Iterable[str]) -> list[Attempts]:
        """Return the items of those of the tasks that it has, one attempt at each."""
        known = [task for task in tasks if task in self.params]
        return [[self._spec(task, i)] for task in known for i in range(SIZE)]

    def _spec(self, task: str, number: int) -> Item:
        # For all others the seed of an entry and its index are as good as their sum.
        is_whole = rules_of(task).is_rebuilt
        seed, size = (SEED, SIZE) if is_whole else (SEED + number, 1)
        how = (task, self.params[task], seed, None, number)
        return Item(*how, size=size, published=True)


@functools.cache
def load_preset(name: str) -> Preset:
    """Return a preset.

    Raises:
        KeyError: There is none of that name.
    """
    row = json.loads(TABLE.read_text(encoding="utf-8"))["presets"][name]
    return Preset(row["params"], frozenset(row["changed"]))
