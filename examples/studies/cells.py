"""The cells of a study: one for each arm, task and seed, each kept as it ends.

    python PROGRAM STUDY [SEED ...]    runs the cells that are not there yet
    python PROGRAM STUDY --print       runs none

Both print a line for each cell that is there, whatever its seed, and the table of the
protocol's seeds. When all of these are there, the table is written to `results/`.
Several commands with different seeds use several cores. Cells are kept in the folder
that the variable STUDIES names, or `data/studies`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

from examples.studies.verdicts import holm, p_value, shown, verdict

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("STUDIES", ROOT / "data" / "studies"))
TABLES = Path(__file__).resolve().parent / "results"
SEEDS = range(100, 110)

Cell = tuple[str, str, int]
"""Arm, task and seed."""

Results = dict[Cell, dict[str, Any]]


def digest_of(settings: Any) -> str:
    """Return a few characters that differ where settings, values for JSON, do."""
    text = json.dumps(settings, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Have a file written whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}")
    write(part)
    part.replace(path)


@dataclass(frozen=True)
class Study:
    """A study of the protocol, or an exploratory one.

    Attributes:
        name: Of its folder and its table.
        arms: The first one is compared with each other.
        tasks: Where.
        metrics: Names of numbers of a result; the first one decides.
        run: Returns the result of an arm, a task and a seed as values for JSON.
        settings: Of a task: all that decides its results, as values for JSON.
        seeds: Of the table.
        left_out: Arms and tasks that do not go together.
        places: Of the scores in each point of `curve`, if results have one.
    """

    name: str
    arms: Sequence[str]
    tasks: Sequence[str]
    metrics: Sequence[str]
    run: Callable[[str, str, int], dict[str, Any]]
    settings: Callable[[str], Mapping[str, Any]]
    seeds: Sequence[int] = SEEDS
    left_out: Collection[tuple[str, str]] = ()
    places: Sequence[str] = ()

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield the task and the arm of each row of the table."""
        for task, arm in product(self.tasks, self.arms):
            if (arm, task) not in self.left_out:
                yield task, arm

    def file(self, cell: Cell) -> Path:
        """Return where a cell is kept; its name has the digest of its settings."""
        digest = digest_of(self.settings(cell[1]))
        return FOLDER / self.name / ("-".join(map(str, [*cell, digest])) + ".json")

    def results(self) -> Results:
        """Return the cells that are there, of all seeds."""
        found: Results = {}
        for task, arm in self.pairs():
            digest = digest_of(self.settings(task))
            for file in (FOLDER / self.name).glob(f"{arm}-{task}-*-{digest}.json"):
                seed = int(file.name.split("-")[-2])
                found[arm, task, seed] = json.loads(file.read_text())
        return dict(sorted(found.items(), key=lambda of: of[0][::-1]))

    def pending(self, seeds: Sequence[int]) -> list[Cell]:
        """Return the cells of some seeds that are not there, seed after seed."""
        cells = [(arm, task, s) for s in seeds for task, arm in self.pairs()]
        return [cell for cell in cells if not self.file(cell).is_file()]

    def one(self, cell: Cell) -> None:
        """Run a cell and keep its result with its settings."""
        began = time.monotonic()
        result = self.run(*cell)
        result["seconds"] = round(time.monotonic() - began, 1)
        result["settings"] = self.settings(cell[1])
        text = json.dumps(result)
        write_whole(self.file(cell), lambda part: part.write_text(text))

    def lines(self) -> Iterator[str]:
        """Yield the metrics of each cell that is there."""
        for (arm, task, seed), result in self.results().items():
            values = [f"{name} {result[name]:.3f}" for name in self.metrics]
            yield f"{task}, {arm}, seed {seed}: {', '.join(values)}"

    def table(self) -> str:
        """Return the means of each task and arm with 95 % intervals, and verdicts."""
        found = {c: r for c, r in self.results().items() if c[2] in self.seeds}
        first = self.metrics[0]
        heads = ["Task", "Arm", "Seeds", *self.metrics, f"{first}, less {self.arms[0]}"]
        lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
        for task, arm in self.pairs():
            of_arm = {s: r for (a, t, s), r in found.items() if (a, t) == (arm, task)}
            values = [shown([r[m] for r in of_arm.values()]) for m in self.metrics]
            values.append(shown(list(self._differences(found, arm, [task]).values())))
            lines.append(f"| {task} | {arm} | {len(of_arm)} | {' | '.join(values)} |")
        return "\n".join([*lines, "", *self._verdicts(found), *self._ends(found)])

    def _differences(
        self, found: Results, arm: str, tasks: Sequence[str]
    ) -> dict[int, float]:
        """Return how far an arm is above the first one, the mean of tasks, by seed."""
        first = self.arms[0]
        name = self.metrics[0]
        of_both = [t for t in tasks if (arm, t) not in self.left_out]
        by_seed: dict[int, float] = {}
        for seed in self.seeds:
            cells = [((arm, t, seed), (first, t, seed)) for t in of_both]
            if cells and all(one in found and two in found for one, two in cells):
                values = [found[one][name] - found[two][name] for one, two in cells]
                by_seed[seed] = fmean(values)
        return by_seed

    def _verdicts(self, found: Results) -> Iterator[str]:
        """Yield the table that decides, if arms are compared; p is Holm's."""
        of = {
            arm: list(self._differences(found, arm, self.tasks).values())
            for arm in self.arms[1:]
        }
        if not of:
            return
        chances = holm([p_value(values) for values in of.values()])
        yield f"| Arm | Seeds | less {self.arms[0]} | p | Verdict |"
        yield "|---|---|---|---|---|"
        for (arm, values), p in zip(of.items(), chances, strict=True):
            word = verdict(values, p)
            yield f"| {arm} | {len(values)} | {shown(values)} | {p:.3f} | {word} |"

    def _ends(self, found: Results) -> Iterator[str]:
        """Yield a table of the scores of each place before and after the training."""
        if not self.places:
            return
        yield "\n| Score | " + " | ".join(self.places) + " |"
        yield "|---" * (len(self.places) + 1) + "|"
        for name, point in [("before", 0), *((arm, -1) for arm in self.arms)]:
            of = [
                r["curve"][point] for c, r in found.items() if name in ("before", c[0])
            ]
            means = [f"{fmean(scores):.2f}" for scores in zip(*of, strict=True)]
            yield f"| {name} | {' | '.join(means)} |"


def main(*studies: Study) -> None:
    """Do what the command line says."""
    by_name = {study.name: study for study in studies}
    parser = argparse.ArgumentParser()
    parser.add_argument("study", choices=by_name)
    parser.add_argument("seeds", nargs="*", type=int, default=list(SEEDS))
    parser.add_argument("--print", action="store_true", help="run no cell")
    options = parser.parse_args()
    study = by_name[options.study]
    for cell in () if options.print else study.pending(options.seeds):
        began = time.monotonic()
        study.one(cell)
        print(*cell, f"{time.monotonic() - began:.0f} s", flush=True)
    print(*study.lines(), "", study.table(), sep="\n")
    if not study.pending(study.seeds):
        today = datetime.now(tz=timezone.utc).date()
        rules = "[README](../README.md) has the protocol, and what is exploratory"
        text = f"# {study.name}\n\nMade on {today}; {rules}.\n\n{study.table()}\n"
        (TABLES / f"{study.name}.md").write_text(text, encoding="utf-8")
