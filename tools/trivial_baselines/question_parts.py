"""The parts of a question that are seen without solving it.

Lines, numbers, quoted texts, lists and grids, each in the order in which
they stand. Nothing here knows a task.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import re
from typing import Any

Grid = list[list[str]]
"""Rows of cells as text; rows may differ in length."""

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_QUOTED = re.compile(r"\"([^\"\n]+)\"|'([^'\n]+)'|`([^`\n]+)`")
_LETTERS = re.compile(r"[A-Za-z]{4,}")
_kept = functools.lru_cache(maxsize=16)
"""Many strategies read the same of one question; none changes what it gets."""

MAX_CELL_CHARS = 3
"""Longer words on a line of several make it prose."""


@_kept
def lines(question: str) -> list[str]:
    """Return the lines that are not blank, without space around them."""
    return [line.strip() for line in question.splitlines() if line.strip()]


@_kept
def numbers(question: str) -> list[str]:
    return _NUMBER.findall(question)


@_kept
def words(text: str) -> list[str]:
    """Return the words, without punctuation around them."""
    stripped = (word.strip(".,;:?!()[]{}'\"`$") for word in text.split())
    return [word for word in stripped if word]


@_kept
def quoted(question: str) -> list[str]:
    return ["".join(found) for found in _QUOTED.findall(question)]


def after_colon(question: str) -> str | None:
    """Return what follows the last colon, None if nothing does."""
    rest = question.rpartition(":")[2].strip()
    return rest if rest and rest != question.strip() else None


@_kept
def enumeration(question: str) -> list[str]:
    """Return the texts between commas after a colon, of the first line with some."""
    for line in question.splitlines():
        texts = [text.strip(" .?") for text in line.rpartition(":")[2].split(",")]
        if ":" in line and len(texts) > 1:
            return texts
    return []


def _bracketed(question: str) -> list[str]:
    """Return the outermost texts in square brackets or braces."""
    found, start, depth = [], 0, 0
    for place, sign in enumerate(question):
        if sign in "[{":
            start, depth = (place if depth == 0 else start), depth + 1
        elif sign in "]}" and depth:
            depth -= 1
            if depth == 0:
                found.append(question[start : place + 1])
    return found


def _as_list(text: str) -> list[Any]:
    """Read a list as JSON, also one in single quotes or with words of its own."""
    for form in (text, text.replace("'", '"')):
        with contextlib.suppress(ValueError):
            value: list[Any] = json.loads(form)
            return value
    inner = text.strip("[]{} ")
    return [word.strip(" '\"") for word in inner.split(",")] if inner else []


@_kept
def value_lists(question: str) -> list[list[Any]]:
    """Return the lists that can be read, empty ones left out."""
    found = [_as_list(text) for text in _bracketed(question) if text.startswith("[")]
    return [value for value in found if value]


def _is_row(line: str) -> bool:
    cells = line.split()
    if len(cells) < 2:
        return len(line) > 1 and not _LETTERS.fullmatch(line) and line[-1] not in ".:,"
    if len(cells[-1]) > 1 and cells[-1][-1] in ".:,?!":
        return False
    return all(len(c) <= MAX_CELL_CHARS or _NUMBER.fullmatch(c) for c in cells)


@_kept
def grid_texts(question: str) -> list[str]:
    """Return runs of two and more lines that are rows of cells, as they stand."""
    lines = map(str.rstrip, question.splitlines())
    runs = itertools.groupby(lines, lambda line: _is_row(line.strip()))
    found = ["\n".join(rows) for is_row, rows in runs if is_row]
    return [text for text in found if "\n" in text]


def cells(text: str) -> Grid:
    """Return the cells of a grid's text; a row of one word is a row of signs."""
    rows = [line.split() for line in text.splitlines()]
    if all(len(row) == 1 for row in rows):
        return [list(row[0]) for row in rows]
    return rows


def grid_text(grid: Grid, like: str) -> str:
    """Write a grid as the text that it was read from: with or without spaces."""
    space = " " if any(len(line.split()) > 1 for line in like.splitlines()) else ""
    return "\n".join(space.join(row) for row in grid)
