"""The runs of a report: their names, and their own numbers from files of metrics."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from rg_env.errors import counted
from rg_env.evaluation.samples import finite, grouped
from rg_env.evaluation.sources import HISTORY, METRICS
from rg_env.rollouts.dumps import METRICS_FOLDER

# -- names -----------------------------------------------------------------------------

RUN_ID = re.compile("(^|rollouts_)([0-9a-f-]{36})_")
"""Begins the name of a run's metrics, and is in the names of its dump files."""

LAUNCHED = ("launch.yaml", "trainer.log")
"""In a folder of `launch`, which is of one run."""

Place = tuple[str, ...]
"""The parts of the path of a run, or the first letters of its id."""


def is_dumped(source: str) -> bool:
    """Return whether a file holds those groups of a run that were kept."""
    match = RUN_ID.search(Path(source).name)
    return match is not None and bool(match[1])


def metrics_of(dump: Path) -> Path:
    """Return the path of the metrics of the run that wrote a dump file."""
    match = RUN_ID.search(dump.name)
    return dump.parent / METRICS_FOLDER / f"{match and match[2]}_{METRICS}"


@functools.lru_cache(maxsize=4096)
def place_of(source: str, run: str | None = None) -> Place:
    """Return the place of the run, perhaps a published one, that a file belongs to."""
    path = Path(source).resolve()
    if run:
        return path.parts[:-2] if path.parts[-3:-2] == (run,) else (run,)
    for folder in path.parents:
        if all((folder / name).is_file() for name in LAUNCHED):
            return folder.parts
    if match := RUN_ID.search(path.name):
        return (match[2][:8],)
    if path.name.startswith("samples.") or path.name == METRICS:
        return path.parts[:-1]
    return *path.parts[:-1], path.name.removesuffix(f"_{METRICS}").split(".json")[0]


def names_of(places: Iterable[Place]) -> Mapping[Place, str]:
    """Return the shortest end of each place that no other one has."""
    names: dict[Place, str] = {}
    unnamed, length = set(places), 0
    while unnamed:
        length += 1
        ends = Counter(place[-length:] for place in unnamed)
        alone = {place for place in unnamed if ends[place[-length:]] == 1}
        names |= {place: "/".join(place[-length:]) for place in alone}
        unnamed -= names.keys()
    return names


# -- numbers ---------------------------------------------------------------------------

USUAL: tuple[str, ...]
USUAL = ("train/mean_score", "train/groups_with_variance", "train/level")
USUAL += ("train/completion_tokens", "train/truncated", "eval/mean_score", "mean_score")
USUAL += ("trainer/loss", "trainer/kl", "trainer/entropy")
"""What is drawn before anything is chosen, in this order."""

POINTS = 360
"""The most points of one number in all runs together."""
MOST_POINTS, FEWEST_POINTS = 150, 12

FEWEST_ROLLOUTS = 32
"""A point has at least so many: a line of `process` is of one group alone."""

SCORED = "train/rollouts_scored"

Run = dict[str, Any]
"""What files of metrics say of a run: its `place`; the `steps` at the ends of the parts
of its curves, shape (P,); `values`, name of a number to its mean in each part, None for
none, shape (P,); `alarms` with name, task, count, sentence and examples of each; and
how many rollouts were `scored`, None where it is not said."""


def _lines(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a file of metrics, but torn ones."""
    lines = []
    for text in path.read_bytes().splitlines():
        with contextlib.suppress(ValueError):
            line = json.loads(text)
            if path.name == Path(HISTORY).name:
                line = {f"trainer/{name}": value for name, value in line.items()}
                line["step"] = line.pop("trainer/number", None)
            if finite(line.get("step")) is not None:
                lines.append(line)
    return lines


def _mean(values: Sequence[float]) -> float | None:
    if not values:
        return None
    if values[-1] > 1 and all(isinstance(value, int) for value in values):
        return values[-1]  # a count, which has no mean
    return float(f"{math.fsum(values) / len(values):.5g}")


def read_metrics(files: Iterable[Path]) -> list[Run]:
    """Read those of some files that are of metrics and have a line."""
    starts: dict[Place, list[list[Any]]] = {}
    for path in sorted(files, key=lambda path: path.stat().st_mtime):
        if path.as_posix().endswith((METRICS, HISTORY)) and (lines := _lines(path)):
            starts.setdefault(place_of(str(path)), []).append(lines)
    points = min(MOST_POINTS, max(FEWEST_POINTS, POINTS // max(1, len(starts))))
    return [_run(place, of, points) for place, of in starts.items()]


def _run(place: Place, starts: Sequence[Any], points: int) -> Run:
    lines = [*chain(*starts)]
    scored = sum(int(finite(of[-1].get(SCORED)) or 0) for of in starts) or None
    # The last step has two lines, and a run that went on after a kill some again.
    by_step: dict[Any, list[Any]] = {}
    for line in lines:
        by_step.setdefault(line["step"], []).append(line)
    steps = sorted(by_step)
    groups = FEWEST_ROLLOUTS * len(steps) // scored if scored else 0
    size = max(1, groups, -(-len(steps) // points))
    parts = [
        [*chain(*(by_step[step] for step in steps[at : at + size]))]
        for at in range(0, len(steps), size)
    ]
    # A hundred tasks are the table, and not a hundred curves.
    keys = {key for line in lines for key in line if "/task/" not in key}
    means = {
        key: [
            _mean([of[key] for of in part if finite(of.get(key)) is not None])
            for part in parts
        ]
        for key in sorted(keys - {"step", "time"})
    }
    alarms = [[of["alarms"] for of in start if "alarms" in of] for start in starts]
    return {
        "place": place,
        "steps": steps[size - 1 :: size] + steps[-1:] * bool(len(steps) % size),
        "values": {key: of for key, of in means.items() if {*of} != {None}},
        "alarms": [*chain(*(of[-1] for of in alarms if of))],
        "scored": scored,
    }


def curves_of(
    runs: Sequence[Run], names: Mapping[Place, str], *, usual: bool
) -> list[dict[str, Any]]:
    """Return the usual curves of runs, or all, as the page takes them."""
    return [
        {
            "name": names[run["place"]],
            "steps": run["steps"],
            "values": {
                key: run["values"][key]
                for key in (USUAL if usual else run["values"])
                if key in run["values"]
            },
        }
        for run in runs
    ]


def _alarms(runs: Sequence[Run]) -> list[tuple[Any, ...]]:
    """Return name, tasks, runs, times and newest sentence of each alarm."""
    rows = [(run["place"], *row) for run in runs for row in run["alarms"]]
    alarms = []
    for name, of in grouped(rows, lambda row: row[1]).items():
        tasks, those = {row[2] for row in of}, {row[0] for row in of}
        newest = f"{of[-1][2]}: {of[-1][4]}"
        alarms.append((name, len(tasks), len(those), sum(row[3] for row in of), newest))
    return alarms


def overview_of(
    runs: Sequence[Run],
    dumped: Mapping[Place, int],
    names: Mapping[Place, str],
) -> dict[str, Any]:
    """Return what the page shows of the runs' own numbers before a click.

    `dumped` are the rollouts in dump files.
    """
    scored = {run["place"]: run["scored"] for run in runs if run["scored"]}
    more = {run: scored[run] for run in dumped if scored.get(run, 0) > dumped[run]}
    notes = []
    if more:
        held, of = sum(dumped[run] for run in more), sum(more.values())
        hold = f"the dump files of {counted(len(more), 'run')} hold"
        what = "numbers and tables are of these, curves and alarms of all"
        notes.append(f"{hold} {held:,} of {of:,} scored rollouts: {what}")
    if unknown := dumped.keys() - scored.keys():
        hold = f"the dump files of {counted(len(unknown), 'run')} hold"
        why = "the metrics of these runs, with their curves and alarms, are not here"
        notes.append(f"{hold} groups that were kept, perhaps not all: {why}")
    return {
        "metrics": curves_of(runs, names, usual=True),
        "numbers": sorted({key for run in runs for key in run["values"]}),
        "alarms": _alarms(runs),
        "scored": {names[run]: of for run, of in more.items()},
        "notes": notes,
    }
