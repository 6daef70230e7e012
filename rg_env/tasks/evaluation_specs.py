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
from typing import Any, Literal

from rg_env.task_rules.table import rules_of
from rg_env.tasks.difficulty import Difficulty
from rg_env.tasks.sampler import MAX_ATTEMPTS, evaluation_seed
from rg_env.tasks.selection import TaskChoice

PresetName = Literal["rg-easy", "rg-hard"]

TABLE = Path(__file__).with_name("published_settings.json")
SEED, SIZE = 45, 50
"""Of every published data set."""


@dataclasses.dataclass(frozen=True)
class EvalSpec:
    """An evaluation item before it is made.

    Attributes:
        params: Dataset parameters that differ from the library's defaults.
        level: In [0, 1], None for the library's defaults.
        number: Its number among those of its choice, from 0.
        seed: The seed of its entry; of ours in [2**31, 2**32).
        others: What is made in its place, one after the other, while the entry is none
            that is used; nothing for one of a preset.
        size: Of the dataset that it is of; it is number `number` there, or the only
            one.
        published: Whether it is one of a preset.
    """

    task: str
    params: Mapping[str, Any]
    level: float | None
    number: int
    seed: int
    others: Sequence[EvalSpec] = ()
    size: int = 1
    published: bool = False

    @property
    def place(self) -> tuple[int, int]:
        """Its index in its dataset, and the dataset's size."""
        return (self.number if self.size > 1 else 0), self.size


def evaluation_specs(
    choices: Sequence[TaskChoice],
    samples_per_task: int,
    eval_seed: int,
    difficulty: Difficulty | None = None,
    level: float | None = None,
) -> list[EvalSpec]:
    """Return the evaluation items of some choices, so many of each.

    They are at `level` where their task has a scale. With None they are of the
    library's default parameters, so that runs whose levels move can be compared; a
    task whose level is fixed is evaluated at that level.
    """

    def attempt_at(choice: TaskChoice, number: int, attempt: int) -> EvalSpec:
        task, params, own = choice.task, dict(choice.params), None
        seed = evaluation_seed(eval_seed, task, params, number, attempt)
        if difficulty is not None:
            own = difficulty.fixed_level(task)
            if level is not None and task in difficulty.scales:
                own = level
            params = difficulty.params_at(task, own, seed) | params
        return EvalSpec(task, params, own, number, seed)

    specs = []
    for choice in choices:
        for number in range(samples_per_task):
            first, *others = (
                attempt_at(choice, number, attempt) for attempt in range(MAX_ATTEMPTS)
            )
            specs.append(dataclasses.replace(first, others=others))
    return specs


@dataclasses.dataclass(frozen=True)
class Preset:
    """A published evaluation.

    Attributes:
        params: Task to the dataset parameters that differ from the library's defaults.
        changed: Tasks of which not all questions are the published ones.
    """

    params: Mapping[str, Mapping[str, Any]]
    changed: frozenset[str]

    def specs(self, tasks: Iterable[str]) -> list[EvalSpec]:
        """Return the items of those of the tasks that it has."""
        known = [task for task in tasks if task in self.params]
        return [self._spec(task, i) for task in known for i in range(SIZE)]

    def _spec(self, task: str, number: int) -> EvalSpec:
        # For all others the seed of an entry and its index are as good as their sum.
        is_whole = rules_of(task).is_rebuilt
        seed, size = (SEED, SIZE) if is_whole else (SEED + number, 1)
        params = self.params[task]
        return EvalSpec(task, params, None, number, seed, (), size, published=True)


@functools.cache
def load_preset(name: str) -> Preset:
    """Return a preset.

    Raises:
        KeyError: There is none of that name.
    """
    row = json.loads(TABLE.read_text(encoding="utf-8"))["presets"][name]
    return Preset(row["params"], frozenset(row["changed"]))
