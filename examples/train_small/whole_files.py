"""Files that are the old one or the new one, whenever this process ends."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_whole(path: Path, text: str) -> None:
    """Write a text in place of what is there."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def as_line(row: Mapping[str, Any]) -> str:
    """Return a row of a JSONL file."""
    return json.dumps(row) + "\n"


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read a JSONL file; none if it is not there, and without a last half line."""
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return [json.loads(line) for line in text.split("\n")[:-1]]
