"""A table for the pages that are written from tables of the code."""

from __future__ import annotations

from collections.abc import Sequence


def markdown_table(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a table in Markdown; bars within cells are escaped."""
    lines = [headings, tuple("---" for _ in headings), *rows]
    cells = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in cells)
