"""The runs of a report: their names, the numbers of their samples, and their curves."""

from __future__ import annotations

import contextlib
import functools
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from rg_env.errors import printable
from rg_env.results.estimates import (
    PART,
    Estimate,
    Key,
    Numbers,
    estimates,
    results,
    with_parts,
)
from rg_env.results.result_file import RUN_ID
from rg_env.results.samples import Row, finite
from rg_env.results.sources import METRICS
from rg_env.reward.score import OUTCOMES

# -- names -----------------------------------------------------------------------------

Place = str
"""The path of a run, or its name; of dump files, the first letters of its id."""

FirstRows = dict[tuple[Place, str | None], Row]
"""Place and model of a run to the row of its first sample."""


@functools.lru_cache(maxsize=4096)
def place_of(source: str, run: str | None = None) -> Place:
    """Return the place of the run, perhaps a published one, that a file belongs to."""
    path = Path(source).resolve()
    if run:
        return str(path.parent.parent)
    if match := RUN_ID.search(path.name):
        return match[1][:8]
    if path.name.startswith("samples.") or path.name == METRICS:
        return str(path.parent)
    return str(path.parent / path.name.removesuffix(f"_{METRICS}").split(".json")[0])


class RunMetrics(NamedTuple):
    """The numbers of a file of metrics.

    Attributes:
        began: The time of its first line, "" if there is none.
        scored: Rollouts scored, 0 if nobody knows.
        alarms: The newest ones.
        curves: Key to pairs of a step and the mean of the part that it ends; there are
            up to `MOST_POINTS` of them.
    """

    began: str = ""
    scored: int = 0
    alarms: Sequence[str] = ()
    curves: Mapping[str, Sequence[tuple[float, float]]] = {}


class Run(NamedTuple):
    """A run of a report.

    Attributes:
        label: What tells it from the others: its name; its model, if runs share the
            name; and its time, if the name is an id.
        began: The time of its first sample, or of its first metrics, to the minute.
        digest: Digest of the items of an evaluation, otherwise "".
    """

    label: str
    model: str
    began: str
    digest: str
    metrics: RunMetrics


def runs_of(first_rows: FirstRows, metrics: Mapping[Place, RunMetrics]) -> list[Run]:
    """Return the runs of samples in their order, and then those of metrics alone.

    Metrics of a place with several runs are those of the first.
    """
    models = Counter(place for place, _ in first_rows)
    alone: FirstRows = {(place, None): {} for place in metrics if place not in models}
    shares = Counter(Path(place).name for place in {*models, *metrics})
    left = dict(metrics)
    runs = []
    for (place, model), row in [*first_rows.items(), *alone.items()]:
        name = Path(place).name
        of_run = left.pop(place, RunMetrics())
        began = str(row.get("time") or of_run.began)[:16].replace("T", " ")
        # All of a place tells it from one of its name.
        told = [name if shares[name] == 1 else place.lstrip("/")]
        told += [model] if model and models[place] > 1 else []
        told += [began] if began and "/" not in place else []
        digest = str(row.get("items_digest") or "")
        label = printable(", ".join(told))
        runs.append(Run(label, model or "", began, digest, of_run))
    return runs


# -- numbers of samples ----------------------------------------------------------------
# 1 - 0.9 is less than 0.1.
TENTH = (pl.col("level") * 10 + 1e-9).floor().clip(0, 9) / 10

FIGURES = {
    "by_item": "score",
    "right": "right",
    "pass_at_k": "pass@{}",
    "answered": "answered",
    "with_variance": "with variance",
    "truncated": "truncated",
    "level": "level",
    "tokens": "tokens",
}
"""Number of a part to the heading of its column."""


def parts_of_runs(table: pl.DataFrame, k: int) -> dict[Key, Numbers]:
    """Return kind, name and number of a run to the numbers of that part of it."""
    level = pl.format("{} to {}", TENTH.round(1), (TENTH + 0.1).round(1))
    levels = table.drop_nulls("level").with_columns(kind=pl.lit("level"), name=level)
    samples = pl.concat([with_parts(table), levels])
    by = [*PART, "result"]
    tokens = estimates(samples, pl.col("tokens"), by, within=(0.0, math.inf))
    parts = sorted(results(samples, by, k).items())
    return {part: of | {"tokens": tokens.get(part)} for part, of in parts}


def outcomes_of_runs(table: pl.DataFrame) -> Iterator[tuple[int, str, Estimate]]:
    """Yield run, outcome and its share of the rollouts, the best outcome first."""
    for word in dict.fromkeys([*OUTCOMES, *table["outcome"]]):
        shares = estimates(table, pl.col("outcome") == word, ["result"])
        for (run,), share in shares.items():
            if share.mean:
                yield run, word, share


# -- curves ----------------------------------------------------------------------------

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
    alarms = [line["alarms"] for line in lines if line["alarms"]]
    rows = [[finite(line.get(name)) for name in ("step", *CURVES)] for line in lines]
    # The last step has two lines, and a run that went on after a kill some again.
    table = pl.DataFrame(
        rows, dict.fromkeys(("step", *CURVES), pl.Float64), orient="row"
    )
    step = pl.col("step")
    size = -(-table["step"].n_unique() // MOST_POINTS)
    part = (step.rank("dense") - 1) // size
    means = table.group_by(part.alias("part")).agg(step.max(), pl.col(CURVES).mean())
    means = means.sort("step")
    return RunMetrics(
        began=str(lines[0].get("time") or ""),
        scored=int(finite(lines[-1].get("train/rollouts_scored")) or 0),
        alarms=alarms[-1] if alarms else [],
        curves={key: means.select("step", key).drop_nulls().rows() for key in CURVES},
    )


def curves_of(runs: Iterable[Run]) -> dict[str, list[Any]]:
    """Return name to the curves of all runs, each with its color, label and points."""
    curves: dict[str, list[Any]] = {}
    for number, run in enumerate(runs):
        color = f"hsl({(210 + 137.5 * number) % 360:g} 70% 48%)"
        for key, points in run.metrics.curves.items():
            if len(points) > 1:
                curves.setdefault(CURVES[key], []).append((color, run.label, points))
    return curves
