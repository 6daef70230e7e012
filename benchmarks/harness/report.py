"""What several runs say together: medians, ratios and tables for people."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

Run = Mapping[str, Any]

MEASURES: dict[str, tuple[str, ...]] = {
    "groups/s": ("groups_per_s",),
    "server idle": ("server_idle",),
    "CPU main ms": ("cpu_ms_per_group", "main"),
    "CPU children ms": ("cpu_ms_per_group", "children"),
    "CPU API ms": ("cpu_ms_per_group", "api"),
    "CPU server ms": ("cpu_ms_per_group", "server"),
    "CPU harness ms": ("cpu_ms_per_group", "harness"),
    "loop p50 ms": ("loop_ms", "p50"),
    "loop p99 ms": ("loop_ms", "p99"),
    "loop max ms": ("loop_ms", "max"),
    "first group s": ("first_group_s",),
    "peak PSS MiB": ("memory_mib", "peak_pss"),
    "final PSS MiB": ("memory_mib", "final_pss"),
    "busy with others": ("busy_with_others",),
}
"""Name in tables to place in a run."""

COMPARED = (
    "groups/s",
    "CPU main ms",
    "CPU children ms",
    "loop p99 ms",
    "loop max ms",
    "first group s",
    "peak PSS MiB",
)


def value(run: Run, measure: str) -> float | None:
    """Return one number of a run; None where it has none."""
    found: Any = run
    for name in MEASURES[measure]:
        found = found[name]
    return None if found is None else float(found)


def settings_of(runs: Iterable[Run]) -> list[str]:
    return list(dict.fromkeys(run["title"] for run in runs))


def contestants_of(runs: Iterable[Run]) -> list[str]:
    return list(dict.fromkeys(run["contestant"] for run in runs))


def _of(runs: Iterable[Run], title: str, contestant: str) -> list[Run]:
    return [r for r in runs if (r["title"], r["contestant"]) == (title, contestant)]


def median(runs: Sequence[Run], title: str, who: str, measure: str) -> float | None:
    """Return the median over the rounds; None without a number."""
    found = [value(run, measure) for run in _of(runs, title, who)]
    numbers = [number for number in found if number is not None]
    return statistics.median(numbers) if numbers else None


def ratio(
    runs: Sequence[Run], title: str, first: str, second: str, measure: str
) -> float | None:
    """Return the median over the rounds of first/second, pairs of one round each."""
    of_second = {run["round"]: value(run, measure) for run in _of(runs, title, second)}
    ratios = []
    for run in _of(runs, title, first):
        above, below = value(run, measure), of_second.get(run["round"])
        if above is not None and below:
            ratios.append(above / below)
    return statistics.median(ratios) if ratios else None


def summary(runs: Sequence[Run]) -> dict[str, Any]:
    """Return medians and ratios as plain values for the JSON file."""
    names = contestants_of(runs)
    return {
        title: {
            "medians": {
                who: {m: median(runs, title, who, m) for m in MEASURES} for who in names
            },
            "ratios": {
                f"{names[0]} / {other}": {
                    m: ratio(runs, title, names[0], other, m) for m in COMPARED
                }
                for other in names[1:]
            },
        }
        for title in settings_of(runs)
    }


def _number(number: float | None) -> str:
    if number is None:
        return "-"
    digits = 0 if abs(number) >= 100 else 1 if abs(number) >= 10 else 2
    return f"{number:,.{digits}f}"


def _share(number: float | None) -> str:
    return "-" if number is None else f"{number:.1%}"


WIDEST_LABEL = 26


def _empty(heading: str, *columns: str) -> Table:
    """Return a table whose first column is text and the others numbers."""
    table = Table(title=heading, title_justify="left", box=None, pad_edge=False)
    table.add_column("", max_width=WIDEST_LABEL)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _table(heading: str, runs: Sequence[Run], columns: Mapping[str, str]) -> Table:
    """Return a table of measures with one row for each setting and contestant."""
    table = _empty(heading, *columns)
    for title in settings_of(runs):
        table.add_row(f"[bold]{title}")
        for who in contestants_of(runs):
            if _of(runs, title, who):
                cells = [
                    (_share if measure in SHARES else _number)(
                        median(runs, title, who, measure)
                    )
                    for measure in columns.values()
                ]
                table.add_row(f"  {who}", *cells)
    return table


TABLES: Mapping[str, Mapping[str, str]] = {
    "What reached the API (medians of the rounds)": {
        "groups\n/s": "groups/s",
        "server\nidle": "server idle",
        "first\ns": "first group s",
    },
    "What it took: CPU in ms a group": {
        "main\nprocess": "CPU main ms",
        "its\nchildren": "CPU children ms",
        "API": "CPU API ms",
        "inference\nserver": "CPU server ms",
        "trainer,\nharness": "CPU harness ms",
    },
    "Memory of main process and children, in MiB (PSS: shared pages once)": {
        "peak\nPSS": "peak PSS MiB",
        "last\nPSS": "final PSS MiB",
    },
    "How late the environment's event loop was, in ms": {
        "p50": "loop p50 ms",
        "p99": "loop p99 ms",
        "max": "loop max ms",
        "CPU of\nothers": "busy with others",
    },
}
"""Heading to columns, and to the measure of each."""

SHARES = ("server idle", "busy with others")
"""Measures that are shown as a percentage."""


def tables(runs: Sequence[Run]) -> Group:
    """Return what was found, in tables of at most 80 columns."""
    shown = [_table(heading, runs, columns) for heading, columns in TABLES.items()]
    first, *others = contestants_of(runs)
    shown += [_ratios(runs, first, other) for other in others]
    return Group(*(part for table in shown for part in (table, Text())))


def _ratios(runs: Sequence[Run], first: str, second: str) -> Table:
    heading = f"{first} / {second} (medians of the rounds' ratios)"
    table = _empty(heading, *(measure.replace(" ", "\n") for measure in COMPARED))
    for title in settings_of(runs):
        cells = [_number(ratio(runs, title, first, second, m)) for m in COMPARED]
        table.add_row(title, *cells)
    return table
