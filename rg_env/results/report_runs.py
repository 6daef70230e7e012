"""The runs of a report: their names, and their own numbers from files of metrics."""

from __future__ import annotations

import contextlib
import functools
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from rg_env.results.samples import finite
from rg_env.results.sources import METRICS
from rg_env.run.dumps import METRICS_FOLDER

# -- names -----------------------------------------------------------------------------

RUN_ID = re.compile("(?:^|rollouts_)([0-9a-f-]{36})_")
"""Begins the name of a run's metrics, and is in the names of its dump files."""

Place = tuple[str, ...]
"""The parts of the path of a run; of dump files, "" and the first letters of its id."""


def metrics_of(dump: Path) -> Path:
    """Return the path of the metrics of the run that wrote a dump file."""
    match = RUN_ID.search(dump.name)
    return dump.parent / METRICS_FOLDER / f"{match and match[1]}_{METRICS}"


@functools.lru_cache(maxsize=4096)
def place_of(source: str, run: str | None = None) -> Place:
    """Return the place of the run, perhaps a published one, that a file belongs to."""
    path = Path(source).resolve()
    if run:
        return path.parts[:-2] if path.parts[-3:-2] == (run,) else (run,)
    if match := RUN_ID.search(path.name):
        return ("", match[1][:8])
    if path.name.startswith("samples.") or path.name == METRICS:
        return path.parts[:-1]
    return *path.parts[:-1], path.name.removesuffix(f"_{METRICS}").split(".json")[0]


def names_of(places: Iterable[Place]) -> Mapping[Place, str]:
    """Return the last part of each place, and all of one that shares it."""
    lasts = Counter(place[-1] for place in set(places))
    return {p: p[-1] if lasts[p[-1]] == 1 else "/".join(p).lstrip("/") for p in places}


# -- numbers ---------------------------------------------------------------------------

CURVES = {
    "train/mean_score": "score",
    "mean_score": "score",
    "train/groups_with_variance": "groups with variance",
    "train/level": "level",
    "train/completion_tokens": "tokens",
    "train/truncated": "truncated",
    "eval/mean_score": "score of evaluations",
}
"""Key of metrics to the curve that is drawn of it over the steps."""

MOST_POINTS = 100
# A point has at least so many: a line of `process` is of one group alone.
FEWEST_ROLLOUTS = 32


class RunMetrics(NamedTuple):
    """The numbers of a file of metrics.

    Attributes:
        scored: Rollouts scored.
        alarms: The newest ones.
        curves: Key to pairs of a step and the mean of the part that it ends; there are
            up to `MOST_POINTS` of them.
    """

    scored: int
    alarms: list[str]
    curves: dict[str, list[tuple[float, float]]]


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


def read_metrics(files: Iterable[Path]) -> dict[Place, RunMetrics]:
    """Read those of some files that are of metrics and have a line."""
    read = {place_of(str(of)): _lines(of) for of in files if of.name.endswith(METRICS)}
    return {place: _metrics(lines) for place, lines in read.items() if lines}


def _metrics(lines: Sequence[Mapping[str, Any]]) -> RunMetrics:
    scored = int(finite(lines[-1].get("train/rollouts_scored")) or 0)
    alarms = [line["alarms"] for line in lines if line["alarms"]]
    rows = [[finite(line.get(name)) for name in ("step", *CURVES)] for line in lines]
    # The last step has two lines, and a run that went on after a kill some again.
    table = pl.DataFrame(
        rows, dict.fromkeys(("step", *CURVES), pl.Float64), orient="row"
    )
    step = pl.col("step")
    steps = table["step"].n_unique()
    groups = FEWEST_ROLLOUTS * steps // scored if scored else 0
    size = max(1, groups, -(-steps // MOST_POINTS))
    part = (step.rank("dense") - 1) // size
    means = table.group_by(part.alias("part")).agg(step.max(), pl.col(CURVES).mean())
    means = means.sort("step").with_columns(pl.col(CURVES).round_sig_figs(5))
    curves = {key: means.select("step", key).drop_nulls().rows() for key in CURVES}
    return RunMetrics(scored, alarms[-1] if alarms else [], curves)
