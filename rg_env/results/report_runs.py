"""The runs of a report: their names, and their own numbers from files of metrics."""

from __future__ import annotations

import contextlib
import functools
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from rg_env.results.samples import finite
from rg_env.results.sources import METRICS
from rg_env.run.dumps import METRICS_FOLDER

# -- names -----------------------------------------------------------------------------

RUN_ID = re.compile("(^|rollouts_)([0-9a-f-]{36})_")
"""Begins the name of a run's metrics, and is in the names of its dump files."""

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
    if match := RUN_ID.search(path.name):
        return (match[2][:8],)
    if path.name.startswith("samples.") or path.name == METRICS:
        return path.parts[:-1]
    return *path.parts[:-1], path.name.removesuffix(f"_{METRICS}").split(".json")[0]


def names_of(places: Iterable[Place]) -> Mapping[Place, str]:
    """Return the last part of each place, and all of one that shares it."""
    lasts = Counter(place[-1] for place in set(places))
    return {p: p[-1] if lasts[p[-1]] == 1 else "/".join(p).lstrip("/") for p in places}


# -- numbers ---------------------------------------------------------------------------

CURVES = ["train/mean_score", "train/groups_with_variance", "train/level"]
CURVES += ["train/completion_tokens", "train/truncated", "eval/mean_score"]
CURVES += ["mean_score"]
"""What is drawn over the steps, in this order."""

MOST_POINTS = 100
# A point has at least so many: a line of `process` is of one group alone.
FEWEST_ROLLOUTS = 32

Run = dict[str, Any]
"""What files of metrics say of a run: its `place`; the `steps` at the ends of the parts
of its curves, shape (P,); `values`, curve to its mean in each part, None for none,
shape (P,); the newest `alarms`; and how many rollouts were `scored`."""


def _lines(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a file of metrics, each alarm as a text; no others."""
    lines = []
    for text in path.read_bytes().splitlines():
        with contextlib.suppress(AttributeError, RecursionError, TypeError, ValueError):
            line = json.loads(text)
            line["alarms"] = [
                f"{name} in {task}, {count} times, the newest: {why}"
                for name, task, count, why, *_ in line.get("alarms", ())
            ]
            if finite(line.get("step")) is not None:
                lines.append(line)
    return lines


def read_metrics(files: Iterable[Path]) -> list[Run]:
    """Read those of some files that are of metrics and have a line."""
    read = {place_of(str(of)): _lines(of) for of in files if of.name.endswith(METRICS)}
    return [_run(place, lines) for place, lines in read.items() if lines]


def _run(place: Place, lines: Sequence[Any]) -> Run:
    scored = int(finite(lines[-1].get("train/rollouts_scored")) or 0)
    alarms = [line["alarms"] for line in lines if line["alarms"]]
    rows = [[finite(line.get(name)) for name in ("step", *CURVES)] for line in lines]
    # The last step has two lines, and a run that went on after a kill some again.
    schema = dict.fromkeys(("step", *CURVES), pl.Float64)
    table, step = pl.DataFrame(rows, schema, orient="row"), pl.col("step")
    steps = table["step"].n_unique()
    groups = FEWEST_ROLLOUTS * steps // scored if scored else 0
    size = max(1, groups, -(-steps // MOST_POINTS))
    part = (step.rank("dense") - 1) // size
    means = table.group_by(part.alias("part")).agg(step.max(), pl.col(CURVES).mean())
    means = means.sort("step").with_columns(pl.col(CURVES).round_sig_figs(5))
    return {
        "place": place,
        "steps": means["step"].to_list(),
        "values": {key: means[key].to_list() for key in CURVES if means[key].count()},
        "alarms": alarms[-1] if alarms else [],
        "scored": scored,
    }


def overview_of(
    runs: Sequence[Run], dumped: Mapping[Place, int], names: Mapping[Place, str]
) -> dict[str, Any]:
    """Return what the page shows of the runs' own numbers.

    `dumped` are the rollouts in dump files.
    """
    scored = {run["place"]: run["scored"] for run in runs}
    held, of = sum(dumped.values()), sum(scored.get(run, 0) for run in dumped)
    share = f"{held:,} of {of:,} scored rollouts"
    if not all(map(scored.get, dumped)):
        share, of = "groups that were kept, perhaps not all", held + 1
    note = f"dump files hold {share}: numbers and tables are of these"
    return {
        "metrics": [
            {
                "name": names[run["place"]],
                "steps": run["steps"],
                "values": run["values"],
            }
            for run in runs
        ],
        "alarms": [
            f"{names[run['place']]}: {alarm}" for run in runs for alarm in run["alarms"]
        ],
        "notes": [note] if held < of else [],
    }
