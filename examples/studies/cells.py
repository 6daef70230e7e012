"""The cells of a study: one for each arm, task and seed, each kept as it ends.

    cells = Cells("wrong_rewards", ARMS, TASKS, SEEDS, METRICS, run)
    cells.main()

`python STUDY` says how long it will take, runs the cells that are not there yet, two at
a time with one thread each, and prints the table; the same command continues. When all
cells are there, it writes the table into the folder `results`.
`python STUDY --only ARM TASK SEED` runs one cell, also if it is there.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

from rg_env import shutdown
from rg_env.results.estimates import (
    Estimate,
    estimates,
    paired,
    row_of,
    table_of,
    with_parts,
)
from rg_env.results.samples import Sample

AT_ONCE, TRIAL = 2, 0.05
FOLDER = Path(__file__).resolve().parents[2] / "data" / "studies"
TABLES = Path(__file__).resolve().parent / "results"

Cell = tuple[str, str, int]
"""Arm, task and seed."""


@dataclass(frozen=True)
class Cells:
    """A study.

    Attributes:
        name: Of its folder and its program.
        arms: What is compared; differences are to the first one.
        tasks: On which.
        seeds: With which.
        metrics: Names of values of a result in [0, 1]; the first is what is compared.
        run: Makes the result of an arm, a task and a seed, of the given share of its
            size; values for JSON.
        left_out: Arms and tasks that do not go together.
    """

    name: str
    arms: Sequence[str]
    tasks: Sequence[str]
    seeds: Sequence[int]
    metrics: Sequence[str]
    run: Callable[[str, str, int, float], dict[str, Any]]
    left_out: Collection[tuple[str, str]] = ()

    def _cells(self) -> Iterator[Cell]:
        """Yield all cells, those of a seed together."""
        for seed, arm, task in product(self.seeds, self.arms, self.tasks):
            if (arm, task) not in self.left_out:
                yield arm, task, seed

    def _file(self, cell: Cell) -> Path:
        return FOLDER / self.name / ("-".join(map(str, cell)) + ".json")

    def results(self) -> dict[Cell, dict[str, Any]]:
        """Return the results that are there."""
        files = {cell: self._file(cell) for cell in self._cells()}
        return {c: json.loads(f.read_text()) for c, f in files.items() if f.is_file()}

    def pending(self) -> list[Cell]:
        """Return the cells without a result, in the order in which they run."""
        done = self.results()
        return [cell for cell in self._cells() if cell not in done]

    def one(self, cell: Cell) -> None:
        """Run a cell and keep its result, whole or not at all."""
        began, file = time.monotonic(), self._file(cell)
        result = self.run(*cell, 1.0)
        result["seconds"] = round(time.monotonic() - began, 1)
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(result))
        part.replace(file)

    def main(self) -> None:
        """Do what the command line says; Ctrl-C ends it at once."""
        shutdown.stop_at_interrupt()
        if sys.argv[1:2] == ["--only"]:
            arm, task, seed = sys.argv[2:]
            self.one((arm, task, int(seed)))
            return
        todo = self.pending()
        if todo:
            print(self._forecast(todo), flush=True)
        failed = 0
        with ThreadPoolExecutor(AT_ONCE) as threads:
            for number, code in enumerate(threads.map(self._process, todo), 1):
                failed += code != 0
                if rest := todo[number:]:
                    print(self._forecast(rest), flush=True)
        print(self.table())
        if failed:
            sys.exit(f"error: {failed} cells have failed; the same command tries again")
        self.write_table()

    def write_table(self) -> None:
        """Write the table of all cells, and the day on which it was made, to a file."""
        today = datetime.now(tz=timezone.utc).date()
        text = f"# {self.name}\n\nMade on {today}.\n\n{self.table()}\n"
        TABLES.mkdir(exist_ok=True)
        (TABLES / f"{self.name}.md").write_text(text, encoding="utf-8")

    def _process(self, cell: Cell) -> int:
        command = [sys.executable, sys.argv[0], "--only", *map(str, cell)]
        one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}
        return subprocess.run(command, env=one_thread, check=False).returncode

    def _forecast(self, todo: Sequence[Cell]) -> str:
        """Say how long the rest will take, at first by a trial of its first cell."""
        seconds: dict[str, list[float]] = {}
        for (_, task, _), result in self.results().items():
            seconds.setdefault(task, []).append(result["seconds"])
        start_s = 0.0
        if not seconds:  # the first call makes what a task and seed need once
            first_s, none_s, part_s = (self._trial(todo[0], s) for s in (0, 0, TRIAL))
            start_s = max(0.0, first_s - none_s)
            seconds = {todo[0][1]: [none_s + (part_s - none_s) / TRIAL]}
        every = fmean(map(fmean, seconds.values()))
        rest_s = sum(fmean(seconds.get(task, [every])) for _, task, _ in todo)
        rest_s += start_s * len({cell[1:] for cell in todo})
        return f"{len(todo)} cells: some {math.ceil(rest_s / AT_ONCE / 60)} minutes"

    def _trial(self, cell: Cell, share: float) -> float:
        """Return the seconds that a share of a cell takes."""
        began = time.monotonic()
        self.run(*cell, share)
        return time.monotonic() - began

    def _rows(self, metric: str) -> Any:
        """Return a metric of all cells as a table of numbers.py: a seed is an item."""
        return with_parts(
            table_of(
                row_of(Sample(task, "", f"seed {seed}", result[metric], ""), arm_index)
                for (arm, task, seed), result in self.results().items()
                for arm_index in [self.arms.index(arm)]
            ),
            ["task"],
        )

    def table(self) -> str:
        """Return the metrics of each task and arm, and the first one's differences.

        Intervals are at 95 %, over the seeds; differences are of equal seeds.
        """
        rows = [self._rows(metric) for metric in self.metrics]
        by = ["name", "result"]
        means = [estimates(r, by=by) for r in rows]
        heads = [*self.metrics, f"{self.metrics[0]}, less that of {self.arms[0]}"]
        lines = ["| Task | Arm | Seeds | " + " | ".join(heads) + " |"]
        lines.append("|---|---|--:|" + "---|" * len(heads))
        for task, (index, arm) in product(self.tasks, enumerate(self.arms)):
            if (task, index) not in means[0]:
                continue
            values = [shown(m[task, index]) for m in means]
            less = paired(rows[0], 0, index)["task", task]["by_item"] if index else None
            values.append(shown(less) if less else "")
            seeds = means[0][task, index].clusters
            lines.append(f"| {task} | {arm} | {seeds} | {' | '.join(values)} |")
        return "\n".join(lines)


def shown(value: Estimate) -> str:
    """Return an estimate with its interval."""
    return f"{value.mean:.3f} ({value.interval()})"
