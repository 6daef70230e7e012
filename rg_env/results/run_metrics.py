"""The metrics of a run for a report: when it began, its alarms, its curves."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl

from rg_env.results.samples import Row, finite

CURVES = {
    "train/mean_score": "score",
    "mean_score": "score",
    "train/groups_with_variance": "groups with variance",
    "train/level": "level",
    "train/completion_tokens": "tokens",
    "train/truncated": "truncated",
    "eval/mean_score": "score of evaluations",
}
"""Key of metrics to the name of its curve."""

MAX_POINTS = 100


class RunMetrics(NamedTuple):
    """The contents of a file of metrics.

    Attributes:
        began: The time of its first line, or "".
        scored: Number of scored rollouts, 0 if it is not known.
        alarms: The newest alarms.
        curves: Key to up to `MAX_POINTS` points: the last of some steps, and the mean
            value of these steps.
    """

    began: str = ""
    scored: int = 0
    alarms: Sequence[str] = ()
    curves: Mapping[str, Sequence[tuple[float, float]]] = {}


def read_metrics(path: Path) -> RunMetrics | None:
    """Read a file of metrics, without invalid lines; None if there are no others."""
    lines = []
    alarms: list[str] = []
    for text in path.read_bytes().splitlines():
        with contextlib.suppress(AttributeError, RecursionError, TypeError, ValueError):
            line = json.loads(text)
            new_alarms = [
                f"{name} in {task}, {count} times, the newest: {why}"
                for name, task, count, why, *_ in line.get("alarms", ())
            ]
            if finite(line.get("step")) is not None:
                lines.append(line)
                alarms = new_alarms or alarms
    if not lines:
        return None
    return RunMetrics(
        began=str(lines[0].get("time") or ""),
        scored=int(finite(lines[-1].get("train/rollouts_scored")) or 0),
        alarms=alarms,
        curves=_points_of(lines),
    )


def _points_of(lines: Sequence[Row]) -> dict[str, Sequence[tuple[float, float]]]:
    """Return the points of the curves, by the keys of `CURVES`."""
    columns = ("step", *CURVES)
    rows = [[finite(line.get(name)) for name in columns] for line in lines]
    table = pl.DataFrame(rows, dict.fromkeys(columns, pl.Float64), orient="row")
    step = pl.col("step")
    # Steps are counted once: the last has two lines, and a resumed run repeats some.
    size = -(-table["step"].n_unique() // MAX_POINTS)
    part = (step.rank("dense") - 1) // size
    means = table.group_by(part.alias("part")).agg(step.max(), pl.col(CURVES).mean())
    means = means.sort("step")
    return {key: means.select("step", key).drop_nulls().rows() for key in CURVES}
