"""What a cheap strategy earns at a task and level: the baseline of its items.

Where an answer space is small, guessing pays. `baselines.json` says how much, for one
version of the library: measured by `python -m rg_env.items.make_baselines` at the
library's defaults and at every step of the shipped scales. An item belongs to one of
these by its parameters, and so do those of a mixture or of parameters of the user's
own where they happen to be the same; all others have the baseline 0.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal

RewardBaseline = Literal["none", "chance"]

TABLE = Path(__file__).with_name("baselines.json")

WORTH_SHIPPING = 0.1
"""A task and level at which the best cheap strategy earns less has the baseline 0: it
is about what measuring errs by, or what the library pays for any readable answer."""

HIGHEST = 0.95
"""Where a cheap strategy earns more, the baseline is this: the level is of no use, but
what divides by its rest stays a number."""


@dataclasses.dataclass(frozen=True)
class Baseline:
    """What the best cheap strategy earns at one task and level.

    Attributes:
        params: Dataset parameters that differ from the library's defaults.
        value: Its mean score, in [`WORTH_SHIPPING`, `HIGHEST`].
        error: Standard error of that mean.
        strategy: What it does.
    """

    params: Mapping[str, Any]
    value: float
    error: float
    strategy: str


@dataclasses.dataclass(frozen=True)
class Baselines:
    """The baselines of some tasks.

    Attributes:
        library_version: Of the library that they were measured with.
        by_task: Task to its baselines; a task without any was measured and has none
            that is worth shipping.
        digests: Task to the digest of the library's sources that were measured.
    """

    library_version: str
    by_task: Mapping[str, tuple[Baseline, ...]]
    digests: Mapping[str, str]

    def of(self, task: str, params: Mapping[str, Any]) -> float:
        """Return the baseline of an item, in [0, 1); 0 where none is known.

        Args:
            task: The task that made it.
            params: Its dataset parameters that differ from the defaults.
        """
        for baseline in self.by_task.get(task, ()):
            if baseline.params == params:
                return baseline.value
        return 0.0

    def of_tasks(self, tasks: Collection[str]) -> Baselines:
        """Return the baselines of these tasks alone."""
        kept = {task: row for task, row in self.by_task.items() if task in tasks}
        digests = {task: self.digests[task] for task in kept}
        return Baselines(self.library_version, kept, digests)


NO_BASELINES = Baselines("", {}, {})
"""Every item has the baseline 0."""


def load_shipped(path: Path = TABLE) -> Baselines:
    """Read a table that `table_text` wrote."""
    table = json.loads(path.read_text(encoding="utf-8"))
    rows = table["tasks"]
    return Baselines(
        library_version=table["library_version"],
        by_task={
            task: tuple(Baseline(**baseline) for baseline in row["baselines"])
            for task, row in rows.items()
        },
        digests={task: row["digest"] for task, row in rows.items()},
    )


def _task_text(task: str, digest: str, row: tuple[Baseline, ...]) -> str:
    baselines = ",".join(
        f"\n   {json.dumps(dataclasses.asdict(baseline), ensure_ascii=False)}"
        for baseline in row
    )
    return f'  "{task}": {{"digest": "{digest}", "baselines": [{baselines}]}}'


def table_text(baselines: Baselines) -> str:
    """Return a table as JSON, one line a baseline, tasks by name."""
    rows = [
        _task_text(task, baselines.digests[task], row)
        for task, row in sorted(baselines.by_task.items())
    ]
    version = json.dumps(baselines.library_version)
    body = ",\n".join(rows)
    return f'{{\n "library_version": {version},\n "tasks": {{\n{body}\n }}\n}}\n'
