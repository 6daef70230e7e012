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
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from rg_env import shutdown
from rg_env.errors import SettingError, counted, printable, visible
from rg_env.installation import COMMAND
from rg_env.library.baselines import guessing_notes
from rg_env.places import new_folder
from rg_env.results import report_numbers as numbers
from rg_env.results.estimates import completions_of_most_items, row_of, table_of
from rg_env.results.result_file import metrics_beside
from rg_env.results.samples import Sample, batched
from rg_env.results.sources import Sources, files_of
from rg_env.reward.score import OUTCOMES
from rg_env.settings.program_settings import SIMULATED

logger = logging.getLogger(__name__)

SAMPLES = "samples.js"
OWN = re.compile(r"index\.html|(report|samples|texts-\d{4,})\.js")
"""The files of a report, which another one replaces."""

# Characters; the middle of a longer text is left out, with a line that says so.
LONGEST_TEXT = 32_000

CHUNK = 256
"""Samples in a file of texts; report.js has this number too."""

PREVIEW_CHARS = 48
COLUMNS = ["run", "task", "score", "outcome", "level", "step", "tokens", "answer"]
"""The columns of the table of rollouts; those that are empty are left out."""

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
    left_out = len(value) - LONGEST_TEXT
    if left_out <= 0:
        return value
    half = LONGEST_TEXT // 2
    gap = (
        f"\n\n[... {left_out:,} of {len(value):,} characters are left out here ...]\n\n"
    )
    return f"{value[:half]}{gap}{value[-half:]}"


def _read(
    samples: Iterator[Sample], folder: Path
) -> tuple[numbers.FirstRows, pl.DataFrame, list[str | None]]:
    """Read samples, and write their texts into files of the folder.

    Returns the first row of each run, the table of the samples, and the beginning of
    each answer.
    """
    first_rows: numbers.FirstRows = {}
    of_runs: dict[Any, int] = {}
    rows = []
    previews = []
    for number, chunk in enumerate(batched(samples, CHUNK), 1):
        texts = []
        for sample in chunk:
            row = sample.row
            place = numbers.place_of(str(row["source"]), row.get("run"))
            run = (place, row.get("model"))
            first_rows.setdefault(run, row)
            rows.append(row_of(sample, of_runs.setdefault(run, len(of_runs))))
            answer = row["answer"]
            previews.append(answer and printable(answer[:PREVIEW_CHARS]))
            texts.append({name: _shortened(value) for name, value in row.items()})
        _write_script(folder / f"texts-{number:04}.js", "texts", [number, texts])
    return first_rows, table_of(rows), previews


# -- the page --------------------------------------------------------------------------


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
    files = [f for f in files_of(paths) if folder.resolve() not in f.resolve().parents]
    of_files = counted(len(files), "file")
    beside = {*map(metrics_beside, files)}.difference(files)
    files += sorted(path for path in beside if path.is_file())
    sources = Sources(files)
    with new_folder(folder, _own_files) as new:
        first_rows, table, previews = _read(sources.samples("report"), new)
        # Last: they know of no less than the dumps.
        runs = numbers.runs_of(first_rows, numbers.read_metrics(files))
        if not runs:
            raise sources.no_completion(paths)
        labels = {number: run.label for number, run in enumerate(runs)}
        lines = table.with_columns(
            pl.col("task", "outcome").map_elements(printable, pl.String),
            pl.Series("answer", previews, pl.String),
            run=pl.col("result").replace_strict(labels, return_dtype=pl.String),
        )
        columns = [name for name in COLUMNS if lines[name].count()]
        columns = columns if len(labels) > 1 else columns[1:]
        _write_script(new / SAMPLES, "samples", lines.select(columns).rows())
        k = completions_of_most_items(table)
        parts = numbers.parts_of_runs(table, k)
        rollouts = counted(len(table), "rollout")
        values = {
            "title": title or "Report",
            "size": f"{rollouts} of {counted(len(runs), 'run')} in {of_files}",
            "paths": [Path(path).name or path for path in paths],
            "made": f"{datetime.now().astimezone():%Y-%m-%d %H:%M}",
            "unread": sources.reasons(),
            "runs": runs,
            "alarms": [f"{of.label}: {a}" for of in runs for a in of.metrics.alarms],
            "curves": numbers.curves_of(runs),
            "columns": columns,
            "parts": parts,
            "figures": [
                (name, heading.format(k))
                for name, heading in numbers.FIGURES.items()
                if any(part.get(name) for part in parts.values())
            ],
            "outcomes": numbers.outcomes_of_runs(table),
            "meanings": OUTCOMES,
            "guessing": guessing_notes(set(table["task"])),
            "simulated": SIMULATED,
            "command": COMMAND,
        }
        _write_page(new, values)
    for reason in sources.reasons():
        logger.warning("not in the report: %s", reason)
    return len(table)


def report_of(paths: Sequence[Path], folder: Path, *, title: str) -> Path | None:
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
