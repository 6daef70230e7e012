"""The report: a folder with a page that opens from the disk, without a network.

    index.html                  the page: style, tables, points of curves
    report.js                   sorts tables, draws curves, shows rollouts
    samples.js                  the lines of the table of rollouts
    texts-0001.js ...           the texts of 256 rollouts, read when one is opened

A page from the disk may not fetch and not import, so data is a script that hands it
over. A model's text is data there, and escaped by jinja2 in the tables.

Mends B24 of docs/host_defects.md: the framework's page takes messages for markdown, in
which `<think>` and `<answer>` disappear and a model's HTML is live.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import re
import shlex
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from rg_env import shutdown
from rg_env.errors import SettingError, counted, printable, visible
from rg_env.installation import COMMAND
from rg_env.library.registry import guessing_notes
from rg_env.places import new_folder
from rg_env.results.estimates import (
    PART,
    Estimate,
    Key,
    Numbers,
    completions_of_most_items,
    estimate_means,
    results,
    row_of,
    table_of,
    with_parts,
)
from rg_env.results.samples import Row, Sample, batched, finite
from rg_env.results.sources import (
    METRICS,
    RunPath,
    Sources,
    find_files,
    metrics_path,
    run_path,
)
from rg_env.reward.score import OUTCOMES
from rg_env.settings.program_settings import SIMULATED

logger = logging.getLogger(__name__)

SAMPLES = "samples.js"
OWN = re.compile(r"index\.html|(report|samples|texts-\d{4,})\.js")
"""The files of a report, which another one replaces."""

# Characters; the middle of a longer text is left out, with a line that says so.
MAX_TEXT_CHARS = 32_000

CHUNK = 256
"""Samples in a file of texts; report.js has this number too."""

PREVIEW_CHARS = 48
COLUMNS = ["run", "task", "score", "outcome", "level", "step", "tokens", "answer"]
"""The columns of the table of rollouts; those that are empty are left out."""

# -- runs ------------------------------------------------------------------------------

FirstRows = dict[tuple[RunPath, str | None], Row]
"""RunPath and model of a run to the row of its first sample."""


class RunMetrics(NamedTuple):
    """The numbers of a file of metrics.

    Attributes:
        began: The time of its first line, "" if there is none.
        scored: Rollouts scored, 0 if nobody knows.
        alarms: The newest ones.
        curves: Key to pairs of a step and the mean of the part that it ends; there are
            up to `MAX_POINTS` of them.
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


def runs_of(first_rows: FirstRows, metrics: Mapping[RunPath, RunMetrics]) -> list[Run]:
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
    tokens = estimate_means(samples, pl.col("tokens"), by, within=(0.0, math.inf))
    parts = results(samples, by, k)
    return {part: of | {"tokens": tokens.get(part)} for part, of in parts.items()}


def outcomes_of_runs(table: pl.DataFrame) -> Iterator[tuple[int, str, Estimate]]:
    """Yield run, outcome and its share of the rollouts, the best outcome first."""
    for word in dict.fromkeys([*OUTCOMES, *table["outcome"]]):
        shares = estimate_means(table, pl.col("outcome") == word, ["result"])
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

MAX_POINTS = 100


def _metrics_in(path: Path) -> RunMetrics | None:
    """Read a file of metrics without lines that are none; None if it has no other."""
    lines = []
    alarms: list[str] = []
    for text in path.read_bytes().splitlines():
        with contextlib.suppress(AttributeError, RecursionError, TypeError, ValueError):
            line = json.loads(text)
            newest = [
                f"{name} in {task}, {count} times, the newest: {why}"
                for name, task, count, why, *_ in line.get("alarms", ())
            ]
            if finite(line.get("step")) is not None:
                lines.append(line)
                alarms = newest or alarms
    if not lines:
        return None
    rows = [[finite(line.get(name)) for name in ("step", *CURVES)] for line in lines]
    # The last step has two lines, and a run that went on after a kill some again.
    table = pl.DataFrame(
        rows, dict.fromkeys(("step", *CURVES), pl.Float64), orient="row"
    )
    step = pl.col("step")
    size = -(-table["step"].n_unique() // MAX_POINTS)
    part = (step.rank("dense") - 1) // size
    means = table.group_by(part.alias("part")).agg(step.max(), pl.col(CURVES).mean())
    means = means.sort("step")
    return RunMetrics(
        began=str(lines[0].get("time") or ""),
        scored=int(finite(lines[-1].get("train/rollouts_scored")) or 0),
        alarms=alarms,
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


# -- the files of the folder -----------------------------------------------------------


def _write_script(path: Path, name: str, value: object) -> None:
    """Write a script that hands a value over; ASCII, whatever a model wrote."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False, default=str)
    path.write_text(f"REPORT.{name}({text});\n", encoding="ascii")


def _own_files(folder: Path) -> list[Path]:
    """Return the files of the report in a folder, [] if there is none."""
    begin = b"REPORT.samples("
    with contextlib.suppress(OSError), (folder / SAMPLES).open("rb") as file:
        if file.read(len(begin)) == begin:
            return [path for path in folder.iterdir() if OWN.fullmatch(path.name)]
    return []


def _shortened(value: Any) -> Any:
    """Return a value; a text visibly, and without its middle if it is too long."""
    if not isinstance(value, str):
        return value
    value = visible(value)
    left_out = len(value) - MAX_TEXT_CHARS
    if left_out <= 0:
        return value
    half = MAX_TEXT_CHARS // 2
    gap = (
        f"\n\n[... {left_out:,} of {len(value):,} characters are left out here ...]\n\n"
    )
    return f"{value[:half]}{gap}{value[-half:]}"


def _read(samples: Iterator[Sample], folder: Path) -> tuple[FirstRows, pl.DataFrame]:
    """Read samples, and write their texts into files of the folder.

    Returns the first row of each run, and the table of the samples, with the beginning
    of each `answer`.
    """
    first_rows: FirstRows = {}
    of_runs: dict[Any, int] = {}
    rows = []
    previews = []
    for number, chunk in enumerate(batched(samples, CHUNK), 1):
        texts = []
        for sample in chunk:
            row = sample.row
            place = run_path(str(row["source"]), row.get("run"))
            run = (place, row.get("model"))
            first_rows.setdefault(run, row)
            rows.append(row_of(sample, of_runs.setdefault(run, len(of_runs))))
            answer = row["answer"]
            previews.append(answer and printable(answer[:PREVIEW_CHARS]))
            texts.append({name: _shortened(value) for name, value in row.items()})
        _write_script(folder / f"texts-{number:04}.js", "texts", [number, texts])
    answers = pl.Series(previews, dtype=pl.String)
    return first_rows, table_of(rows).with_columns(answer=answers)


# -- the page --------------------------------------------------------------------------


def _write_samples(
    folder: Path, table: pl.DataFrame, runs: Sequence[Run]
) -> Sequence[str]:
    """Write a line for each sample of the page, and return its columns."""
    labels = {number: run.label for number, run in enumerate(runs)}
    lines = table.with_columns(
        pl.col("task", "outcome").map_elements(printable, pl.String),
        run=pl.col("result").replace_strict(labels, return_dtype=pl.String),
    )
    columns = [name for name in COLUMNS if lines[name].count()]
    columns = columns if len(runs) > 1 else columns[1:]
    _write_script(folder / SAMPLES, "samples", lines.select(columns).rows())
    return columns


def _write_page(folder: Path, values: Mapping[str, Any]) -> None:
    here = Path(__file__).parent
    shutil.copyfile(here / "report.js", folder / "report.js")
    templates = Environment(
        loader=FileSystemLoader(here),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        # Names of tasks and runs are anybody's text; markup is of a type of its own.
        finalize=lambda value: printable(value) if type(value) is str else value,
    )
    page = templates.get_template("report.html").render(values)
    (folder / "index.html").write_text(page, "utf-8", "backslashreplace")


def write_report(paths: Sequence[str], folder: Path, *, title: str = "") -> int:
    """Write a report of files; one that was there is replaced when it is whole.

    Memory holds some numbers of each sample, and the texts of one file of texts.
    Returns how many samples are in it.

    Raises:
        SettingError: A path leads nowhere, nothing in them can be read, or the folder
            holds something else.
        OSError: A file cannot be read, or the disk does not take one.
        SystemExit: A signal came; nothing of it is left.
    """
    files = [
        f for f in find_files(paths) if folder.resolve() not in f.resolve().parents
    ]
    of_files = counted(len(files), "file")
    beside = {*map(metrics_path, files)}.difference(files)
    files += sorted(path for path in beside if path.is_file())
    sources = Sources(files)
    with new_folder(folder, _own_files) as new:
        first_rows, table = _read(sources.samples("report"), new)
        # Last: they know of no less than the dumps.
        of_metrics = [file for file in files if file.name.endswith(METRICS)]
        metrics = {run_path(str(file)): _metrics_in(file) for file in of_metrics}
        runs = runs_of(first_rows, {at: of for at, of in metrics.items() if of})
        if not runs:
            raise sources.no_completion_error(paths)
        sampled = runs[: len(first_rows)]
        k = completions_of_most_items(table)
        parts = parts_of_runs(table, k)
        rollouts = counted(len(table), "rollout")
        values = {
            "title": title or "Report",
            "size": f"{rollouts} of {counted(len(sampled), 'run')} in {of_files}",
            "paths": [Path(path).name or path for path in paths],
            "made": f"{datetime.now().astimezone():%Y-%m-%d %H:%M}",
            "unread": sources.reasons(),
            "runs": sampled,
            "alarms": [f"{of.label}: {a}" for of in runs for a in of.metrics.alarms],
            "curves": curves_of(runs),
            "columns": _write_samples(new, table, sampled),
            "parts": parts,
            "figures": [
                (name, heading.format(k))
                for name, heading in FIGURES.items()
                if any(part.get(name) for part in parts.values())
            ],
            "outcomes": outcomes_of_runs(table),
            "meanings": OUTCOMES,
            "guessing": guessing_notes(set(table["task"])),
            "simulated": SIMULATED,
            "command": COMMAND,
        }
        _write_page(new, values)
    for reason in sources.reasons():
        logger.warning("not in the report: %s", reason)
    return len(table)


def write_final_report(
    paths: Sequence[Path], folder: Path, *, title: str
) -> Path | None:
    """Write the report that a command ends with; return its page if there is one.

    After a signal, it logs the command that writes the report instead.
    """
    there = [str(path) for path in paths if path.exists()]
    try:
        if there and shutdown.has_begun():
            command = shlex.join(["report", *there, "--out", str(folder)])
            logger.warning("the report is written by: %s %s", COMMAND, command)
        elif there:
            write_report(there, folder, title=title)
            return folder / "index.html"
    except (OSError, SettingError) as error:
        why = getattr(error, "reason", error)
        logger.error("the report %s cannot be written: %s", folder, why)
    return None
