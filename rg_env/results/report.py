"""The report: a folder with a page that opens from the disk, without a network.

    index.html                  the page, with its style
    report.js                   what the page does
    overview.js                 numbers and curves, which the page begins with
    samples.js                  columns of all samples, read when they are looked for
    texts-0001.js ...           their texts, read when one is opened
    datatables.*, uplot.*       tables and charts, copied from installed packages

A page from the disk may not fetch and not import, so everything is a script that hands
its data over. What a model wrote is data in all of them, and the page shows it as text.

Mends B24 of docs/host_defects.md: the framework's page takes messages for markdown, in
which `<think>` and `<answer>` disappear and a model's HTML is live.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import re
import shlex
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from rg_env import shutdown
from rg_env.errors import SettingError
from rg_env.installation import COMMAND
from rg_env.library.baselines import guessing_notes
from rg_env.places import new_folder
from rg_env.results import report_runs as runs
from rg_env.results.numbers import row_of, table_of
from rg_env.results.report_tally import ReportTally
from rg_env.results.sources import Sources, files_of, metrics_beside
from rg_env.results.terminal import WorkProgress
from rg_env.settings.program_settings import SIMULATED

logger = logging.getLogger(__name__)

IS_SIMULATED = f"the model `{SIMULATED}` says nothing about any real one"
OVERVIEW = "overview.js"
OWN = re.compile(
    r"index\.html|(report|overview|samples|texts-\d{4,})\.js|(datatables|uplot)\.(js|css)"
)
"""The files of a report, which another one replaces."""

# Characters; the middle of a longer one is left out, with a word that says so.
LONGEST_TEXT = 32_000

CHUNK_CHARS = 2**20
PREVIEW_CHARS = 48
LIBRARIES = {
    "datatables.js": ("itables", "html/dt_bundle.js"),
    "datatables.css": ("itables", "html/dt_bundle.css"),
    "uplot.js": ("uplot", "static/uPlot.iife.js"),
    "uplot.css": ("uplot", "static/uPlot.min.css"),
}
"""File of the report to the package that has it and its place there."""

TEXTS = ("question", "gold_answer", "completion", "answer", "system")
FACTS: tuple[str, ...]
FACTS = ("seed", "params", "scores", "formats", "normalized", "reward", "reason")
FACTS += ("finish_reason", "prompt_tokens", "completion_tokens", "time")
"""What the reader shows of a sample's row, unchanged."""


# -- the files of the folder -----------------------------------------------------------


def _script(path: Path, name: str, value: Any) -> None:
    """Write a script that hands a value over; ASCII, whatever a model wrote."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False, default=str)
    path.write_text(f"REPORT.{name}({text});\n", encoding="ascii")


def _own_files(folder: Path) -> list[Path]:
    """Return the files of the report in a folder, [] if there is none."""
    begin = b"REPORT.overview("
    try:
        with (folder / OVERVIEW).open("rb") as file:
            is_report = file.read(len(begin)) == begin
    except OSError:
        return []
    files = folder.iterdir() if is_report else ()
    return [file for file in files if OWN.fullmatch(file.name)]


def _cut(value: object) -> str | list[Any] | None:
    """Return a text, or its begin, its end and how long it is where it is too long."""
    text, half = str(value), LONGEST_TEXT // 2
    is_long = len(text) > LONGEST_TEXT
    short = [text[:half], text[-half:], len(text)] if is_long else text
    return None if value is None else short


class _Texts:
    """Writes the texts of samples into files of about a megabyte."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._count, self._size = folder, 0, 0
        self._rows: list[dict[str, Any]] = []
        self.starts: list[int] = []

    def add(self, row: Mapping[str, Any]) -> None:
        texts = {name: _cut(row.get(name)) for name in TEXTS}
        facts = {k: row[k] for k in FACTS if row.get(k) not in (None, False, [], "")}
        place = f"{row.get('source')}, {row.get('place')}"
        self._rows.append({**texts, "place": place, "facts": facts})
        sizes = (len(str(row.get(name, ""))) for name in TEXTS)
        self._size += sum(min(size, LONGEST_TEXT) for size in sizes)
        if self._size >= CHUNK_CHARS:
            self.flush()

    def flush(self) -> None:
        self.starts.append(self._count)
        self._count += len(self._rows)
        number = len(self.starts)
        chunk = {"number": number, "rows": self._rows}
        _script(self._folder / f"texts-{number:04}.js", "texts", chunk)
        self._rows, self._size = [], 0


def _write_page(folder: Path, **values: Any) -> None:
    for name, (package, place) in LIBRARIES.items():
        # Found and not imported, which would take pandas and seconds.
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            raise SettingError(f"report: the package {package} is not installed")
        text = (Path(spec.origin).parent / place).read_text(encoding="utf-8")
        if name == "datatables.js":  # a module, which a page from the disk cannot load
            form = r"\bexport\{[^}]*?([\w$]+) as default[^}]*\};"
            text = re.sub(form, r"globalThis.DataTable=\1;", text)
            text = f"(()=>{{{text}\n}})();\n"
        (folder / name).write_text(text, encoding="utf-8")
    here = Path(__file__).parent
    shutil.copyfile(here / "report.js", folder / "report.js")
    templates = Environment(
        loader=FileSystemLoader(here), autoescape=True, undefined=StrictUndefined
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
    beside = {of(file) for file in files for of in (metrics_beside, runs.metrics_of)}
    files += sorted(path for path in beside.difference(files) if path.is_file())
    sources = Sources(files)
    results, dumped = dict[tuple[runs.Place, str], int](), Counter[runs.Place]()
    dates = list[str]()  # of the results
    rows, previews = list[Sequence[Any]](), list[str | None]()
    shows = WorkProgress("report", sources.total_kb, "kB")
    with new_folder(folder, _own_files) as new, shows as progress:
        texts = _Texts(new)
        for sample in sources.samples(progress):
            row, source = sample.row, str(sample.row["source"])
            place = runs.place_of(source, row.get("run"))
            result = results.setdefault((place, row.get("model") or ""), len(results))
            if result == len(dates):
                dates.append(str(row.get("time") or "")[:16].replace("T", " "))
            rows.append(row_of(sample, result))
            previews.append(row["answer"] and row["answer"][:PREVIEW_CHARS])
            if runs.is_dumped(source):
                dumped[place] += 1
            texts.add(row)
        texts.flush()
        metrics = runs.read_metrics(files)  # last: they know of no less than the dumps
        if not rows and not metrics:
            raise sources.no_completion(paths)
        places = [*(run["place"] for run in metrics), *(at for at, _ in results)]
        short = runs.names_of(places)
        names = [
            # The place is last: that is how the page finds the metrics of a run.
            ", ".join(
                filter(None, ("" if model in short[at] else model, began, short[at]))
            )
            for (at, model), began in zip(results, dates, strict=True)
        ]
        tally = ReportTally(table_of(rows))
        overview = {
            **tally.overview(names),
            **runs.overview_of(metrics, dumped, short),
            "paths": [Path(path).name or path for path in paths],
            "files": len(files),
            "unread": sources.reasons(),
            "made": f"{datetime.now().astimezone():%Y-%m-%d %H:%M}",
        }
        if any(model == SIMULATED for _, model in results):
            overview["notes"].insert(0, IS_SIMULATED)
        overview["notes"] += guessing_notes({task for task, _ in overview["tasks"]})
        _script(new / OVERVIEW, "overview", overview)
        columns = {**tally.columns(), "preview": previews, "starts": texts.starts}
        _script(new / "samples.js", "samples", columns)
        _write_page(new, title=title or "Report")
    for reason in sources.reasons():
        logger.warning("not in the report: %s", reason)
    return len(rows)


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
