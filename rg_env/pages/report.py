"""The report: a folder with a page that opens from the disk, without a network.

    index.html                  the page, with its style
    report.js                   what the page does
    overview.js                 numbers and curves, which the page begins with
    metrics.js                  all numbers of steps, read when one of them is chosen
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

from rg_env import installation
from rg_env.errors import SettingError
from rg_env.evaluation.sources import Sources, files_of, metrics_beside
from rg_env.pages import runs
from rg_env.pages.report_tally import ReportTally
from rg_env.reports.terminal import WorkProgress
from rg_env.tasks.baselines import guessing_notes
from rg_env.whole_files import new_folder

logger = logging.getLogger(__name__)

SIMULATED = (
    "The model is simulated: these texts and scores say nothing about any real one."
)
MARK = "report.js"
"""A folder that holds it is a report, and may be replaced by one."""

LONGEST_TEXT = 32_000
"""Characters; the middle of a longer one is left out, with a word that says so."""

CHUNK_CHARS = 2**20
LIBRARIES = {
    "datatables.js": ("itables", "html/dt_bundle.js"),
    "datatables.css": ("itables", "html/dt_bundle.css"),
    "uplot.js": ("uplot", "static/uPlot.iife.js"),
    "uplot.css": ("uplot", "static/uPlot.min.css"),
}
"""File of the report to the package that has it and its place there."""

SHOWN: tuple[str, ...]
SHOWN = ("scores", "formats", "normalized", "reward", "reason")
SHOWN += ("finish_reason", "prompt_tokens", "completion_tokens", "time")
"""What the reader shows of a sample's row, unchanged."""


def command_of(row: Mapping[str, Any]) -> str | None:
    """Return the command that makes an item again, None where its file does not say."""
    task, dataset, index = row.get("task"), row.get("dataset"), row.get("index")
    if "seed" in row:
        values = {k: json.dumps(v) for k, v in (row.get("params") or {}).items()}
        params = [shlex.quote(f"{name}={value}") for name, value in values.items()]
        options = "".join(f" --param {param}" for param in params)
        show = f"{installation.COMMAND} show {shlex.quote(str(task))}"
        return f"{show} --seed {row['seed']}{options}"
    if dataset and isinstance(index, int):
        call = f"reasoning_gym.create_dataset({task!r}, **{dataset!r})[{index}]"
        return f"python -c {shlex.quote(f'import reasoning_gym; print({call})')}"
    return None


# -- the files of the folder -----------------------------------------------------------


def _script(path: Path, name: str, value: Any) -> None:
    """Write a script that hands a value over; ASCII, whatever a model wrote."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False, default=str)
    path.write_text(f"REPORT.{name}({text});\n", encoding="ascii")


def _cut(text: str) -> str | list[Any]:
    """Return a text, or its begin, its end and how long it is where it is too long."""
    half = LONGEST_TEXT // 2
    is_long = len(text) > LONGEST_TEXT
    return [text[:half], text[-half:], len(text)] if is_long else text


class _Texts:
    """Writes the texts of samples into files of about a megabyte, each text once."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._count, self._size = folder, 0, 0
        self._rows, self._texts = list[list[Any]](), dict[str, int]()
        self.starts: list[int] = []

    def _number(self, value: object) -> int | None:
        if value is None:
            return None
        text = str(value)
        if text not in self._texts:
            self._size += min(len(text), LONGEST_TEXT)
        return self._texts.setdefault(text, len(self._texts))

    def add(self, row: Mapping[str, Any]) -> None:
        names = ("question", "gold_answer", "command", "completion", "answer", "system")
        texts = {**row, "command": command_of(row)}
        numbers = [self._number(texts.get(name)) for name in names]
        more = {k: row[k] for k in SHOWN if row.get(k) not in (None, False, [], "")}
        place = f"{row.get('source')}, {row.get('place')}"
        self._rows.append([*numbers, self._number(place), more])
        if self._size >= CHUNK_CHARS:
            self.flush()

    def flush(self) -> None:
        self.starts.append(self._count)
        self._count += len(self._rows)
        number, texts = len(self.starts), [*map(_cut, self._texts)]
        chunk = {"number": number, "texts": texts, "rows": self._rows}
        _script(self._folder / f"texts-{number:04}.js", "texts", chunk)
        self._rows, self._texts, self._size = [], {}, 0


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
    shutil.copyfile(here / "report.js", folder / MARK)
    templates = Environment(
        loader=FileSystemLoader(here), autoescape=True, undefined=StrictUndefined
    )
    page = templates.get_template("report.html").render(values)
    (folder / "index.html").write_text(page, "utf-8", "backslashreplace")


def write_report(
    paths: Sequence[str],
    folder: Path,
    *,
    title: str = "",
    note: str = "",
) -> int:
    """Write a report of files; one that was there is replaced when it is whole.

    Memory holds some numbers of each sample, and the texts of one file of texts.
    Returns how many samples are in it.

    Raises:
        SettingError: A path leads nowhere, nothing in them can be read, or the folder
            holds something else.
        OSError: A file cannot be read, or the disk does not take one.
        StoppedError: A signal came; nothing of it is left.
    """
    files = [f for f in files_of(paths) if folder.resolve() not in f.resolve().parents]
    beside = {of(file) for file in files for of in (metrics_beside, runs.metrics_of)}
    files += sorted(path for path in beside.difference(files) if path.is_file())
    sources = Sources(files)
    tally, dumped = ReportTally(), Counter[runs.Place]()
    shows = WorkProgress("report", sources.total_kb, "kB")
    with new_folder(folder, MARK, "a report") as new, shows as progress:
        texts = _Texts(new)
        for sample in sources.samples(progress):
            source, model = str(sample.row["source"]), sample.row.get("model")
            place = runs.place_of(source, sample.row.get("run"))
            tally.add(sample, (place, model))
            dumped[place] += runs.is_dumped(source)
            texts.add(sample.row)
        texts.flush()
        metrics = runs.read_metrics(files)  # last: they know of no less than the dumps
        if not len(tally) and not metrics:
            raise sources.no_completion(paths)
        names = runs.names_of([*(run["place"] for run in metrics), *dumped])
        overview = {
            **tally.overview(names),
            **runs.overview_of(metrics, +dumped, names),
            "paths": [Path(path).name or path for path in paths],
            "files": len(files),
            "unread": sources.reasons(),
            "made": f"{datetime.now().astimezone():%Y-%m-%d %H:%M}",
        }
        overview["notes"] += guessing_notes({task for task, _ in overview["tasks"]})
        scripts = {
            "overview": overview,
            "metrics": runs.curves_of(metrics, names, usual=False),
            "samples": {**tally.columns(), "starts": texts.starts},
        }
        for name, value in scripts.items():
            _script(new / f"{name}.js", name, value)
        _write_page(new, title=title or "Report", note=note)
    for reason in sources.reasons():
        logger.warning("not in the report: %s", reason)
    return len(tally)


def report_of(
    paths: Sequence[Path], folder: Path, *, title: str, is_simulated: bool = False
) -> Path | None:
    """Write the report that a command ends with; return its page if there is one."""
    there = [str(path) for path in paths if path.exists()]
    note = SIMULATED if is_simulated else ""
    try:
        if there:
            write_report(there, folder, title=title, note=note)
            return folder / "index.html"
    except (OSError, SettingError) as error:
        logger.error("the report %s cannot be written: %s", folder, error)
    return None
