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
    HAS_SCORE,
    PART,
    RIGHT,
    SCORE,
    Estimate,
    best_of_items,
    estimates,
    with_parts,
)
from rg_env.results.result_file import RUN_ID
from rg_env.results.samples import finite
from rg_env.results.sources import METRICS
from rg_env.reward.score import OUTCOMES

# -- names -----------------------------------------------------------------------------

Place = str
"""The path of a run, or its name; of dump files, the first letters of its id."""

Found = dict[tuple[Place, str | None], tuple[int, str | None, str | None]]
"""Place and model of a run to its number, and time and items of its first sample."""


@functools.lru_cache(maxsize=4096)
def place_of(source: str, run: str | None = None) -> Place:
    """Return the place of the run, perhaps a published one, that a file belongs to."""
    path = Path(source).resolve()
    if run:
        folder = path.parent.parent
        return str(folder) if folder.name == run else run
    if match := RUN_ID.search(path.name):
        return match[1][:8]
    if path.name.startswith("samples.") or path.name == METRICS:
        return str(path.parent)
    return str(path.parent / path.name.removesuffix(f"_{METRICS}").split(".json")[0])


class Run(NamedTuple):
    """A run of a report.

    Attributes:
        label: What tells it from the others: its name; its model, if runs share the
            name; and its time, if the name is an id.
        began: The time of its first sample, or of its first metrics, to the minute.
        scored: The rollouts that it has scored, 0 if nobody knows.
        digest: Digest of the items of an evaluation, otherwise "".
    """

    label: str
    model: str
    began: str
    scored: int
    digest: str


def runs_of(
    found: Found, metrics: Mapping[Place, RunMetrics]
) -> tuple[list[Run], dict[str, RunMetrics]]:
    """Return the runs of samples, in the order of their numbers, and label to metrics.

    Metrics of a place with several runs have the label of the first.
    """
    places = [place for place, _ in found]
    names = {place: Path(place).name for place in [*metrics, *places]}
    shares = Counter(names.values())  # all of a place tells it from one of its name
    short = {p: n if shares[n] == 1 else p.lstrip("/") for p, n in names.items()}
    labels: dict[Place, str] = {}
    runs = []
    nothing = RunMetrics("", 0, [], {})
    for (place, model), (_, time, digest) in found.items():
        of_run = metrics.get(place, nothing)
        began = str(time or of_run.began)[:16].replace("T", " ")
        told = [short[place]]
        told += [model] if model and places.count(place) > 1 else []
        told += [began] if began and "/" not in place else []
        label = printable(", ".join(told))
        labels.setdefault(place, label)
        runs.append(Run(label, model or "", began, of_run.scored, str(digest or "")))
    named = {labels.get(place, short[place]): of for place, of in metrics.items()}
    return runs, named


# -- numbers of samples ----------------------------------------------------------------
# 1 - 0.9 is less than 0.1.
TENTH = (pl.col("level") * 10 + 1e-9).floor().clip(0, 9) / 10

Part = dict[str, Any]
"""A run, or one of its categories, tasks or levels: `result`, `kind`, `name`, the
numbers of `rollouts` and `items`, and `figures`, name to estimate."""


def completions_of_most_items(table: pl.DataFrame) -> int:
    """Return how many completions of an item every run has, for most of its items.

    Runs with one completion of an item do not count.
    """
    sizes = table.filter(HAS_SCORE).group_by("result", "item").len()
    modes = sizes.group_by("result").agg(pl.col("len").mode().min())["len"]
    return int(modes.filter(modes > 1).min() or 1)


def parts_of_runs(table: pl.DataFrame) -> list[Part]:
    """Return the parts of all runs, in the order of their names."""
    level = pl.format("{} to {}", TENTH.round(1), (TENTH + 0.1).round(1))
    levels = table.drop_nulls("level").with_columns(kind=pl.lit("level"), name=level)
    samples = pl.concat([with_parts(table), levels])
    by = ["result", *PART]
    in_groups = samples.filter(HAS_SCORE).group_by(*by, "task", "item", "group")
    groups = in_groups.agg(pl.len(), differ=SCORE.n_unique() > 1)
    k = completions_of_most_items(table)
    unit = "characters" if table["tokens"].null_count() else "tokens"
    means = {
        "score": estimates(samples, by=by),
        "right": estimates(samples, RIGHT, by),
        f"pass@{k}": best_of_items(samples, RIGHT, by, k),
        "answered": estimates(samples, pl.col("answered"), by),
        "with variance": estimates(
            groups.filter(pl.col("len") > 1), pl.col("differ"), by
        ),
        "truncated": estimates(samples, pl.col("truncated"), by),
        "level": estimates(samples, pl.col("level"), by),
        unit: estimates(samples, pl.col(unit), by, within=(0.0, math.inf)),
    }
    counts = samples.group_by(by).agg(
        rollouts=pl.len(), items=pl.col("item").n_unique()
    )
    parts = list(counts.sort("name", "result").iter_rows(named=True))
    for part in parts:
        key = tuple(part[name] for name in by)
        part["figures"] = {name: of[key] for name, of in means.items() if key in of}
    return parts


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
# A point has at least so many: a line of `process` is of one group alone.
FEWEST_ROLLOUTS = 32


class RunMetrics(NamedTuple):
    """The numbers of a file of metrics.

    Attributes:
        began: The time of its first line, "" if there is none.
        scored: Rollouts scored.
        alarms: The newest ones.
        curves: Key to pairs of a step and the mean of the part that it ends; there are
            up to `MOST_POINTS` of them.
    """

    began: str
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
    began = str(lines[0].get("time") or "")
    return RunMetrics(began, scored, alarms[-1] if alarms else [], curves)


def curves_of(metrics: Mapping[str, RunMetrics]) -> dict[str, list[Any]]:
    """Return name to the curves of all runs, each with its color, label and points."""
    curves: dict[str, list[Any]] = {}
    for key, name in CURVES.items():
        for number, (label, of) in enumerate(metrics.items()):
            color = f"hsl({(210 + 137.5 * number) % 360:g} 70% 48%)"
            if len(of.curves[key]) > 1:
                curves.setdefault(name, []).append((color, label, of.curves[key]))
    return curves
