"""Tables as text: as Markdown for a reader, and as JSON whose diffs are read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import polars as pl


def markdown(tables: Mapping[str, pl.DataFrame]) -> str:
    """Return each table below its heading."""
    with pl.Config(
        tbl_formatting="MARKDOWN",
        tbl_hide_column_data_types=True,
        tbl_hide_dataframe_shape=True,
        tbl_rows=-1,
        tbl_cols=-1,
        tbl_width_chars=-1,
        fmt_str_lengths=10_000,
        float_precision=3,
    ):
        return "\n".join(f"## {title}\n\n{of}\n" for title, of in tables.items())


def table_text(library_version: str, tasks: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the rows of tasks as JSON: one line for each member that is a mapping."""
    rows = []
    for task, row in sorted(tasks.items()):
        members = ",\n".join(f'   "{name}": {_value(of)}' for name, of in row.items())
        rows.append(f'  "{task}": {{\n{members}\n  }}')
    body = ",\n".join(rows)
    version = json.dumps(library_version)
    return f'{{\n "library_version": {version},\n "tasks": {{\n{body}\n }}\n}}\n'


def _value(value: Any) -> str:
    if isinstance(value, (list, tuple)) and any(isinstance(e, dict) for e in value):
        lines = ",".join(f"\n    {_value(element)}" for element in value)
        return f"[{lines}]"
    return json.dumps(value, ensure_ascii=False)
