"""The report: a folder with a page that opens from the disk, without a network.

    index.html                  the page: style, tables, points of curves
    report.js                   sorts tables, shows rollouts
    samples.js                  the lines of the table of rollouts
    texts-0001.js ...           the texts of 256 rollouts, read when one is opened

A page from the disk may neither fetch nor import, so data is in scripts that call a
function with it. A model's text is data there, and escaped by jinja2 in the tables.

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
from rg_env.library.trivial_baselines import guessing_notes
from rg_env.places import new_folder
from rg_env.results.estimates import (
    PART_COLUMNS,
    Estimate,
    Key,
    PartResult,
    estimate_means,
    measure_parts,
    row_of,
    table_of,
    usual_completions,
    with_parts,
)
from rg_env.results.run_metrics import RunMetrics, metrics_path, read_metrics, run_path
from rg_env.results.samples import Row, Sample, batched
from rg_env.results.sources import METRICS, Sources, find_files
from rg_env.reward.score import OUTCOMES
from rg_env.settings.server_and_launch_settings import SIMULATED

logger = logging.getLogger(__name__)

SAMPLES = "samples.js"
REPORT_FILES = re.compile(r"index\.html|(report|samples|texts-\d{4,})\.js")
"""Names of the files of a report, which the next report replaces."""

# The middle of a longer text is left out, with a line that says so.
MAX_TEXT_CHARS = 32_000

CHUNK = 256
"""Samples in a file of texts; report.js has this number too."""

PREVIEW_CHARS = 48
COLUMNS = ["run", "task", "score", "outcome", "level", "step", "tokens", "answer"]
"""The columns of the table of rollouts; empty ones are left out."""

# -- runs ------------------------------------------------------------------------------

FirstRows = dict[tuple[str, str | None], Row]
"""Path and model of a run to the row of its first sample."""


class Run(NamedTuple):
    """A run of a report.

    Attributes:
        label: A unique name: its name, its model, if runs share the name, and its time,
            if the name is an id.
        began: The time of its first sample, or of its first metrics, to the minute.
        digest: Digest of the items of an evaluation, otherwise "".
    """

    label: str
    model: str
    began: str
    digest: str
    metrics: RunMetrics


def runs_of(first_rows: FirstRows, metrics: Mapping[str, RunMetrics]) -> list[Run]:
    """Return the runs of samples in their order, and then those with only metrics.

    If several runs have the same path, the first one gets its metrics.
    """
    models = Counter(path for path, _ in first_rows)
    without_samples: FirstRows = {
        (path, None): {} for path in metrics if path not in models
    }
    namesakes = Counter(Path(path).name for path in {*models, *metrics})
    unused = dict(metrics)
    runs = []
    for (path, model), row in (first_rows | without_samples).items():
        name = Path(path).name
        run_metrics = unused.pop(path, RunMetrics())
        began = str(row.get("time") or run_metrics.began)[:16].replace("T", " ")
        words = [name if namesakes[name] == 1 else path.lstrip("/")]
        if model and models[path] > 1:
            words.append(model)
        if began and "/" not in path:
            words.append(began)
        label = printable(", ".join(words))
        digest = str(row.get("items_digest") or "")
        run = Run(
            label=label,
            model=model or "",
            began=began,
            digest=digest,
            metrics=run_metrics,
        )
        runs.append(run)
    return runs


# -- results of samples ----------------------------------------------------------------

# The tenth of a level; 1 - 0.9 is less than 0.1.
TENTH = (pl.col("level") * 10 + 1e-9).floor().clip(0, 9) / 10


def parts_of_runs(table: pl.DataFrame, k: int) -> dict[Key, PartResult]:
    """Return the results of the parts of each run, by kind, name and run number."""
    level = pl.format("{} to {}", TENTH.round(1), (TENTH + 0.1).round(1))
    levels = table.drop_nulls("level").with_columns(kind=pl.lit("level"), name=level)
    samples = pl.concat([with_parts(table), levels])
    by = [*PART_COLUMNS, "result"]
    tokens = estimate_means(samples, pl.col("tokens"), by, within=(0.0, math.inf))
    parts = measure_parts(samples, by, k)
    return {key: part | {"tokens": tokens.get(key)} for key, part in parts.items()}


def outcomes_of_runs(table: pl.DataFrame) -> Iterator[tuple[int, str, Estimate]]:
    """Yield run number, outcome and its share of the rollouts, the best one first."""
    for outcome in dict.fromkeys([*OUTCOMES, *table["outcome"]]):
        shares = estimate_means(table, pl.col("outcome") == outcome, ["result"])
        for (run,), share in shares.items():
            if share.mean:
                yield run, outcome, share


def curves_of(runs: Iterable[Run]) -> dict[str, list[Any]]:
    """Return the color, label and points of each run in each curve, by its name."""
    curves: dict[str, list[Any]] = {}
    for number, run in enumerate(runs):
        color = f"hsl({(210 + 137.5 * number) % 360:g} 70% 48%)"
        for name, points in run.metrics.curves:
            if len(points) > 1:
                curves.setdefault(name, []).append((color, run.label, points))
    return curves


# -- the files of the folder -----------------------------------------------------------


def _write_script(path: Path, name: str, value: object) -> None:
    """Write a script that calls a function with a value; it is always ASCII."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False, default=str)
    path.write_text(f"REPORT.{name}({text});\n", encoding="ascii")


def _report_files(folder: Path) -> list[Path]:
    """Return the files of the report in a folder, [] if there is none."""
    start = b"REPORT.samples("
    with contextlib.suppress(OSError), (folder / SAMPLES).open("rb") as file:
        if file.read(len(start)) == start:
            return [p for p in folder.iterdir() if REPORT_FILES.fullmatch(p.name)]
    return []


def _shortened(value: Any) -> Any:
    """Return a value; a text with visible signs, and without the middle if too long."""
    if not isinstance(value, str):
        return value
    text = visible(value)
    left_out = len(text) - MAX_TEXT_CHARS
    if left_out > 0:
        half = MAX_TEXT_CHARS // 2
        gap = f"[... {left_out:,} of {len(text):,} characters are left out here ...]"
        text = f"{text[:half]}\n\n{gap}\n\n{text[-half:]}"
    return text


def _read_samples(
    samples: Iterator[Sample], folder: Path
) -> tuple[FirstRows, pl.DataFrame]:
    """Read samples, and write their texts into files of the folder.

    Returns:
        The first row of each run, and the table of the samples, with the beginning of
        each `answer`.
    """
    first_rows: FirstRows = {}
    run_numbers: dict[Any, int] = {}
    rows = []
    previews = []
    for number, chunk in enumerate(batched(samples, CHUNK), 1):
        texts = []
        for sample in chunk:
            row = sample.row
            path = run_path(str(row["source"]), row.get("run"))
            run = (path, row.get("model"))
            first_rows.setdefault(run, row)
            rows.append(row_of(sample, run_numbers.setdefault(run, len(run_numbers))))
            answer = row["answer"]
            previews.append(answer and printable(answer[:PREVIEW_CHARS]))
            texts.append({name: _shortened(value) for name, value in row.items()})
        _write_script(folder / f"texts-{number:04}.js", "texts", [number, texts])
    table = table_of(rows)
    return first_rows, table.with_columns(answer=pl.Series(previews, dtype=pl.String))


# -- the page --------------------------------------------------------------------------


def _write_samples(
    folder: Path, table: pl.DataFrame, runs: Sequence[Run]
) -> Sequence[str]:
    """Write the table of rollouts, and return its columns."""
    labels = {number: run.label for number, run in enumerate(runs)}
    lines = table.with_columns(
        pl.col("task", "outcome").map_elements(printable, pl.String),
        run=pl.col("result").replace_strict(labels, return_dtype=pl.String),
    )
    columns = [name for name in COLUMNS if lines[name].count()]
    if len(runs) == 1:
        columns.remove("run")
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
        # Names of tasks and runs may contain any text; markup is not of type `str`.
        finalize=lambda value: printable(value) if type(value) is str else value,
    )
    page = templates.get_template("report.html").render(values)
    (folder / "index.html").write_text(page, "utf-8", "backslashreplace")


def _values_of(table: pl.DataFrame, runs: Sequence[Run]) -> dict[str, Any]:
    """Return the values of the page that follow from the samples and the runs."""
    k = usual_completions(table)
    parts = parts_of_runs(table, k)
    return {
        "alarms": [f"{run.label}: {a}" for run in runs for a in run.metrics.alarms],
        "curves": curves_of(runs),
        "k": k,
        "parts": parts,
        "estimated": {n for part in parts.values() for n in part if part[n]},
        "outcomes": outcomes_of_runs(table),
        "meanings": OUTCOMES,
        "guessing": guessing_notes(set(table["task"])),
        "simulated": SIMULATED,
        "command": COMMAND,
    }


def write_report(paths: Sequence[str], folder: Path, *, title: str = "") -> int:
    """Write a report of files, which replaces an earlier one once it is complete.

    Memory holds some numbers of each sample, and the texts of one file of texts.

    Returns:
        The number of samples.

    Raises:
        SettingError: A path leads nowhere, nothing in them can be read, or the folder
            contains something else.
        OSError: A file cannot be read, or one of the report cannot be written.
        SystemExit: A signal came; the unfinished report is removed.
    """
    files = [
        f for f in find_files(paths) if folder.resolve() not in f.resolve().parents
    ]
    file_count = counted(len(files), "file")
    beside = {*map(metrics_path, files)}.difference(files)
    files += sorted(path for path in beside if path.is_file())
    sources = Sources(files)
    with new_folder(folder, _report_files) as new:
        first_rows, table = _read_samples(sources.samples("report"), new)
        # Read after the dumps, so that no rollout of a dump is missing in them.
        metrics = {}
        for file in files:
            if file.name.endswith(METRICS) and (contents := read_metrics(file)):
                metrics[run_path(str(file))] = contents
        runs = runs_of(first_rows, metrics)
        if not runs:
            raise sources.no_completion_error(paths)
        sampled = runs[: len(first_rows)]
        counts = f"{counted(len(table), 'rollout')} of {counted(len(sampled), 'run')}"
        values = {
            "title": title or "Report",
            "size": f"{counts} in {file_count}",
            "paths": [Path(path).name or path for path in paths],
            "made": f"{datetime.now().astimezone():%Y-%m-%d %H:%M}",
            "unread": sources.reasons(),
            "runs": sampled,
            "columns": _write_samples(new, table, sampled),
        }
        _write_page(new, values | _values_of(table, runs))
    for reason in sources.reasons():
        logger.warning("not in the report: %s", reason)
    return len(table)


def write_final_report(
    paths: Sequence[Path], folder: Path, *, title: str
) -> Path | None:
    """Write the report that a command ends with, and return its page.

    If no path exists, the report cannot be written or a signal came, there is no page.
    After a signal, a warning has the command that writes the report.
    """
    existing = [str(path) for path in paths if path.exists()]
    try:
        if existing and shutdown.has_begun():
            command = shlex.join(["report", *existing, "--out", str(folder)])
            logger.warning("the report is written by: %s %s", COMMAND, command)
        elif existing:
            write_report(existing, folder, title=title)
            return folder / "index.html"
    except (OSError, SettingError) as error:
        why = getattr(error, "reason", error)
        logger.error("the report %s cannot be written: %s", folder, why)
    return None
