"""What `doctor` found of each task, as rows, a table and JSON. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from rich.table import Table

from rg_env.items.task_check import TaskFindings


def _cell(milliseconds: float | None) -> str:
    return "" if milliseconds is None else f"{milliseconds:.1f}"


def table(findings: Sequence[TaskFindings]) -> Table:
    """Return the findings as a table for the terminal, the sick ones first."""
    result = Table(title="Tasks of this installation")
    result.add_column("task")
    result.add_column("make ms", justify="right")
    result.add_column("score ms", justify="right")
    result.add_column("finding")
    for found in sorted(findings, key=lambda f: (f.is_well, f.task)):
        text = "; ".join([*found.faults, *found.notes]) or "well"
        style = None if found.is_well else "bold red"
        cells = (_cell(found.make_ms), _cell(found.score_ms), text)
        result.add_row(found.task, *cells, style=style)
    return result


def as_json(
    findings: Sequence[TaskFindings], versions: dict[str, str]
) -> dict[str, Any]:
    """Return the findings as plain values."""
    return {
        "versions": versions,
        "well": sum(found.is_well for found in findings),
        "tasks": [dataclasses.asdict(found) for found in findings],
    }
