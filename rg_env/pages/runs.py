"""The runs of a report: their names, and their own numbers from files of metrics."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from rg_env import yaml_text
from rg_env.errors import counted
from rg_env.evaluation.samples import finite, grouped
from rg_env.evaluation.sources import HISTORY, METRICS
from rg_env.rollouts.run_dumps import METRICS_FOLDER
from rg_env.settings import kept_settings
from rg_env.settings.environment_settings import OF_EVALUATION, deciding
from rg_env.yaml_text import YamlError

LAUNCHED = ("launch.yaml", "trainer.log")
"""In a folder of `launch`, which is of one run."""

SETTINGS = {*kept_settings.OF_SERVERS, *deciding(*OF_EVALUATION)}
"""What decides an evaluation, which is shown with its samples."""


def settings_of(samples: Path) -> tuple[str, dict[str, Any]] | None:
    """Return an evaluation's folder and settings, None where none stand beside it."""
    path = samples.with_name("evaluate_config.yaml")
    if samples.name != "samples.jsonl" or not path.is_file():
        return None
    try:
        saved = yaml_text.read(str(path))
        values = {**saved["openai"][0], **saved["env"]}
    except (YamlError, OSError, TypeError, LookupError):
        return None  # damaged; the samples tell the rest
    known = {
        k: v for k, v in values.items() if k in SETTINGS and v not in (None, [], {})
    }
    return samples.parent.name, {**known, "versions": saved.get("versions")}


# -- names -----------------------------------------------------------------------------

RUN_ID = re.compile("(^|rollouts_)([0-9a-f-]{36})_")
"""Begins the name of a run's metrics, and is in the names of its dump files."""

Place = tuple[str, ...]
"""The parts of the path of a run, or the first letters of its id."""


def is_dumped(source: str) -> bool:
    """Return whether a file holds those groups of a run that were kept."""
    found = RUN_ID.search(Path(source).name)
    return found is not None and bool(found[1])


def metrics_of(dump: Path) -> Path:
    """Return the path of the metrics of the run that wrote a dump file."""
    found = RUN_ID.search(dump.name)
    return dump.parent / METRICS_FOLDER / f"{found and found[2]}_{METRICS}"


@functools.lru_cache(maxsize=4096)
def place_of(source: str, run: str | None = None) -> Place:
    """Return the place of the run that a file belongs to.

    Args:
        source: A file of samples or of metrics.
        run: The folder of a published run; "" or None for other files.
    """
    path = Path(source).resolve()
    if run:
        return path.parts[:-2] if path.parts[-3:-2] == (run,) else (run,)
    for folder in path.parents:
        if all((folder / name).is_file() for name in LAUNCHED):
            return folder.parts
    if found := RUN_ID.search(path.name):
        return (found[2][:8],)
    if path.name.startswith("samples.") or path.name == METRICS:
        return path.parts[:-1]
    return *path.parts[:-1], path.name.removesuffix(f"_{METRICS}").split(".json")[0]


def names_of(places: Iterable[Place]) -> Mapping[Place, str]:
    """Return the shortest end of each place that no other one has."""
    names: dict[Place, str] = {}
    unnamed, length = set(places), 0
    while unnamed:
        length += 1
        by_end: dict[Place, list[Place]] = {}
        for place in unnamed:
            by_end.setdefault(place[-length:], []).append(place)
        names |= {of[0]: "/".join(end) for end, of in by_end.items() if len(of) == 1}
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

NOT_HERE = "the metrics of these runs, with their curves and alarms, are not here"

SCORED = "train/rollouts_scored"
WEIGHT = ""
"""The key of a line's new rollouts, a name that no number has."""

FEWEST_ROLLOUTS = 32
"""A point has at least so many: a line of `process` is of one group alone."""


@dataclasses.dataclass(frozen=True)
class RunMetrics:
    """What a file of metrics says.

    Attributes:
        place: Of the run.
        steps: At the ends of the curves' parts, shape (P,).
        values: Name of a number to its mean in each part, None for none, shape (P,).
        alarms: The name, task, count, sentence and examples of each.
        scored: Rollouts that were scored so far; None where it is not said.
    """

    place: Place
    steps: Sequence[float]
    values: Mapping[str, Sequence[float | None]]
    alarms: Sequence[Any]
    scored: int | None

    def curves(self, names: Mapping[Place, str], *, usual: bool) -> dict[str, Any]:
        """Return the usual curves, or all, as the page takes them."""
        keys = [key for key in (USUAL if usual else self.values) if key in self.values]
        values = {key: self.values[key] for key in keys}
        return {"name": names[self.place], "steps": self.steps, "values": values}


def _mean(key: str, lines: Sequence[Any]) -> float | None:
    """Return the mean of a number over the rollouts of some lines, if any has it."""
    known = [line for line in lines if finite(line.get(key)) is not None]
    if not known:
        return None
    last = finite(known[-1][key])
    if last and last > 1 and all(isinstance(line[key], int) for line in known):
        return last  # a count, which has no mean
    weights = [line[WEIGHT] for line in known]
    if not any(weights):  # as of an evaluation
        weights = [1] * len(known)
    total = math.fsum(w * line[key] for w, line in zip(weights, known, strict=True))
    return float(f"{total / sum(weights):.5g}")


def _by_step(lines: Sequence[Any]) -> list[list[Any]]:
    """Return the lines of each step, with the rollouts that are new in each line.

    The last step of a run has two, and one that went on after a kill has some again.
    """
    steps: dict[float, list[Any]] = {}
    before = 0.0
    for line in lines:
        total = finite(line.get(SCORED)) or 0
        # A run that was resumed counts from 0.
        new = total - before if total >= before else total
        before = total
        steps.setdefault(line["step"], []).append({**line, WEIGHT: max(0, new)})
    return [steps[step] for step in sorted(steps)]


def _alarms(value: Any) -> Sequence[Any]:
    """Return the rows of a value that have the form of alarms."""
    rows = value if isinstance(value, list) else []
    are_whole = [row for row in rows if isinstance(row, list) and len(row) == 5]
    return [row for row in are_whole if isinstance(row[4], list)]


def _lines(path: Path) -> list[dict[str, Any]]:
    found = []
    with path.open("rb") as lines:
        for line in lines:
            with contextlib.suppress(ValueError, RecursionError):  # a torn line
                value = json.loads(line)
                if isinstance(value, dict) and path.name == Path(HISTORY).name:
                    value = {f"trainer/{k}": v for k, v in value.items()}
                    value["step"] = value.pop("trainer/number", None)
                if isinstance(value, dict) and finite(value.get("step")) is not None:
                    found.append(value)
    return found


def read_all_metrics(files: Iterable[Path]) -> list[RunMetrics]:
    """Read those of some files that are of metrics and have a line.

    Raises:
        OSError: One cannot be read.
    """
    found: dict[Place, list[list[Any]]] = {}
    for path in sorted(files, key=lambda path: path.stat().st_mtime):
        if path.as_posix().endswith((METRICS, HISTORY)) and (lines := _lines(path)):
            found.setdefault(place_of(str(path)), []).append(lines)
    points = min(MOST_POINTS, max(FEWEST_POINTS, POINTS // max(1, len(found))))
    return [_metrics_of(place, starts, points) for place, starts in found.items()]


def _metrics_of(place: Place, starts: Sequence[Any], points: int) -> RunMetrics:
    """Return the numbers of a run, from the lines of each of its starts."""
    lines = [*chain(*starts)]
    said = [of[-1].get(SCORED) for of in starts]
    scored = sum(n for n in said if isinstance(n, int) and n > 0) or None
    steps = _by_step(lines)
    groups = FEWEST_ROLLOUTS * len(steps) // scored if scored else 0
    size = max(1, groups, -(-len(steps) // points))
    parts = [[*chain(*steps[i : i + size])] for i in range(0, len(steps), size)]
    names = {key for line in lines for key in line if finite(line[key]) is not None}
    # A hundred tasks are the table, and not a hundred curves.
    names = {k for k in names - {"step", "time"} if "/task/" not in k}
    alarms = [[line["alarms"] for line in of if "alarms" in line] for of in starts]
    return RunMetrics(
        place,
        [part[-1]["step"] for part in parts],
        {key: [_mean(key, part) for part in parts] for key in names},
        [*chain(*(_alarms(of[-1]) for of in alarms if of))],
        scored,
    )


def alarms_of(
    metrics: Sequence[RunMetrics], names: Mapping[Place, str]
) -> list[list[Any]]:
    """Return the rows of all alarms, each with the name of its run."""
    return [[names[one.place], *row] for one in metrics for row in one.alarms]


def _alarm_counts(alarms: Iterable[Sequence[Any]]) -> list[list[Any]]:
    """Return name, tasks, runs and times of each alarm."""
    by_name = grouped(alarms, lambda row: str(row[1])).items()
    return [
        [
            *(name, len({str(row[2]) for row in of}), len({row[0] for row in of})),
            sum(row[3] for row in of if isinstance(row[3], int)),
        ]
        for name, of in by_name
    ]


def overview_of(
    metrics: Sequence[RunMetrics],
    dumped: Mapping[Place, int],
    names: Mapping[Place, str],
    *,
    has_rows: bool,
) -> dict[str, Any]:
    """Return what the page shows of the runs' own numbers before a click.

    Args:
        metrics: Of all runs.
        dumped: Run to rollouts in its dump files.
        names: Of runs.
        has_rows: Whether rollouts of a run, as `process` writes them, are there.
    """
    scored = {run.place: run.scored for run in metrics if run.scored}
    more = {run: scored[run] for run in dumped if scored.get(run, 0) > dumped[run]}
    notes = []
    if more:
        held, of = sum(dumped[run] for run in more), sum(more.values())
        runs = f"the dump files of {counted(len(more), 'run')} hold"
        what = "numbers and tables are of these, curves and alarms of all"
        notes.append(f"{runs} {held:,} of {of:,} scored rollouts: {what}")
    if unknown := dumped.keys() - scored.keys():
        runs = f"the dump files of {counted(len(unknown), 'run')} hold"
        notes.append(f"{runs} groups that were kept, perhaps not all: {NOT_HERE}")
    if has_rows and not metrics and not dumped:
        notes.append(NOT_HERE)
    return {
        "metrics": [one.curves(names, usual=True) for one in metrics],
        "numbers": sorted({key for one in metrics for key in one.values}),
        "alarms": _alarm_counts(alarms_of(metrics, names)),
        "scored": {names[run]: of for run, of in more.items()},
        "notes": notes,
    }
