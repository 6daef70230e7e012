"""What `demo` says while it runs, at its end, and its report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.table import Table

from rg_env.reports.metrics import Metrics
from rg_env.rollouts.ledger import Ending
from rg_env.rollouts.run_dumps import METRICS_FOLDER
from rg_env.scoring.extraction import FORMAT_FAILURES
from rg_env.scoring.score import OUTCOMES

if TYPE_CHECKING:
    from rg_env.demo.stand_in_trainer import StandInTrainer

RECENT_TASKS = 12


def progress_line(metrics: Metrics, trainer: StandInTrainer, steps: int) -> str:
    """Return in one line how far the run is."""
    counts = trainer.counts
    place = f"step {counts.steps}/{steps}: {counts.groups} groups sent"
    scored = sum(metrics.outcomes.values())
    if not scored:
        return f"{place}; nothing scored yet"
    failures = sum(metrics.outcomes[name] for name in FORMAT_FAILURES)
    return (
        f"{place}; {scored} rollouts scored, mean score {metrics.mean_score:.2f},"
        f" format failures {failures / scored:.0%}"
    )


def live_view(metrics: Metrics, trainer: StandInTrainer, steps: int) -> RenderableType:
    """Return what a terminal shows while the demo runs."""
    newest = list(metrics.tasks)[-RECENT_TASKS:]
    title = "simulated policy, real environment and API; the newest tasks:"
    line = progress_line(metrics, trainer, steps)
    return Group(line, title, _task_table(metrics, newest))


def _task_table(metrics: Metrics, names: Iterable[str]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("task")
    for heading in ("n", "score"):
        table.add_column(heading, justify="right")
    for name in names:
        tally = metrics.tasks[name]
        table.add_row(name, str(tally.groups), f"{tally.mean_score:.2f}")
    return table


def _counted(counts: Mapping[str, int], meanings: Mapping[str, str]) -> Table:
    """Return a table of what was counted, most first, with what it means."""
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    for justify in ("left", "right", "right", "left"):
        table.add_column(justify=justify)
    total = sum(counts.values())
    for name, count in sorted(counts.items(), key=lambda pair: -pair[1]):
        share = f"{count / total:.1%}"
        table.add_row(f"  {name}", str(count), share, meanings.get(name, ""))
    return table


def _shown_path(path: Path) -> Path:
    """Return a path as it is shortest where the command was started."""
    here = Path.cwd()
    absolute = path.resolve()
    return absolute.relative_to(here) if absolute.is_relative_to(here) else path


def print_report(
    console: Console, metrics: Metrics, levels: Mapping[str, Any] | None
) -> None:
    """Print what was sampled, scored and delivered, and a curriculum's levels."""
    names = sorted(metrics.tasks)
    half = -(-len(names) // 2)
    tables = [
        _task_table(metrics, names[i : i + half]) for i in range(0, len(names), half)
    ]
    console.print("\nGroups (n) and mean score by task, of the simulated policy:")
    console.print(Columns(tables, padding=(0, 2)))
    scored = sum(metrics.outcomes.values())
    console.print(f"\nOutcomes of the {scored} rollouts that were scored:")
    console.print(_counted(metrics.outcomes, OUTCOMES))
    ledger = metrics.ledger
    console.print(f"\nHow the {ledger.queried} rollouts ended:")
    meanings = {ending.value: ending.meaning for ending in Ending}
    console.print(_counted(ledger.outcomes, meanings))
    if levels is not None:
        console.print(
            "\nLevels: {level_changes} changes; now {avg_complexity:.2f} on average,"
            " {min_complexity:.2f} to {max_complexity:.2f}".format(**levels),
            soft_wrap=True,
        )


def write_dumps_report(console: Console, env: Any, folder: Path) -> None:
    """Name the dump files of a run, and make a report of them and its numbers."""
    run_uuid = env.run_uuid
    found = folder.rglob(f"*_{run_uuid}_*.jsonl")
    dumps = sorted(found, key=lambda path: ("FAILED" in path.name, path.name))
    if not dumps:
        return
    console.print("\nDump files, one group a line:")
    for path in dumps:
        console.print(f"  {_shown_path(path)}", soft_wrap=True)
    out = folder / f"demo_{run_uuid}"
    from rg_env.pages.report import report_of  # and polars, which takes its time

    page = report_of(
        [*dumps, folder / METRICS_FOLDER / f"{run_uuid}_metrics.jsonl"],
        out,
        title="Groups of the demo",
        is_simulated=True,
    )
    if page is not None:
        console.print("Open them in a browser:")
        console.print(f"  {_shown_path(page)}", soft_wrap=True)
