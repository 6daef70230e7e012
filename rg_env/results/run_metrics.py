"""The metrics of a run: where they are, and what a report shows of them."""

from __future__ import annotations

import contextlib
import functools
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rg_env.results.samples import Row, finite
from rg_env.results.sources import METRICS
from rg_env.run.dumps import METRICS_FOLDER

# -- files of a run --------------------------------------------------------------------

RUN_ID = re.compile("(?:^|rollouts_)([0-9a-f-]{36})_")
"""The id of a run, in the names of its metrics and its dump files."""


def metrics_path(file: Path) -> Path:
    """Return the path of the metrics of the run that wrote dumps or rows."""
    if match := RUN_ID.search(file.name):
        return file.parent / METRICS_FOLDER / f"{match[1]}_{METRICS}"
    return file.with_name(f"{file.name.removesuffix('.jsonl')}_{METRICS}")


@functools.cache
def run_path(source: str, published_run: str | None = None) -> str:
    """Return the path of the run that a file belongs to.

    Args:
        source: The path of a file of samples or metrics.
        published_run: The name of a published run, whose files are two folders below.

    Returns:
        The path; for dump files and their metrics, the beginning of the run's id.

    Example:
        >>> run_path("/data/evaluate/samples.jsonl")
        '/data/evaluate'
    """
    path = Path(source).resolve()
    if published_run:
        return str(path.parent.parent)
    if match := RUN_ID.search(path.name):
        return match[1][:8]
    if path.name.startswith("samples.") or path.name == METRICS:
        return str(path.parent)
    name = path.name.removesuffix(f"_{METRICS}")
    return str(path.parent / name.split(".json")[0])


# -- their contents --------------------------------------------------------------------

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
        curves: Pairs of a name and up to `MAX_POINTS` points. The mean value of some
            steps is a point at the last of them.
    """

    began: str = ""
    scored: int = 0
    alarms: Sequence[str] = ()
    curves: Sequence[tuple[str, Sequence[tuple[float, float]]]] = ()


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
        curves=_curves_in(lines),
    )


def _curves_in(lines: Sequence[Row]) -> list[Any]:
    """Return the name and the points of each curve."""
    import polars as pl  # slow

    columns = ("step", *CURVES)
    rows = [[finite(line.get(name)) for name in columns] for line in lines]
    table = pl.DataFrame(rows, dict.fromkeys(columns, pl.Float64), orient="row")
    step = pl.col("step")
    # Steps are counted once: the last has two lines, and a resumed run repeats some.
    size = -(-table["step"].n_unique() // MAX_POINTS)
    part = (step.rank("dense") - 1) // size
    means = table.group_by(part=part).agg(step.max(), pl.col(CURVES).mean())
    means = means.sort("step")
    return [
        (name, means.select("step", key).drop_nulls().rows())
        for key, name in CURVES.items()
    ]
