"""The lines of samples.jsonl: what was asked, answered and scored, one a completion.

An evaluation is resumed from them and its numbers are computed from them, so that the
file says as much as the run that wrote it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rg_env.evaluation.samples import TRUNCATED, Sample

logger = logging.getLogger(__name__)

Row = Mapping[str, Any]

NOT_USED = "not_used"
"""Outcome of an item that nobody is asked, since its reference answer is not right."""


def key_of(row: Row) -> str:
    """Return what two lines about one completion have in common."""
    names = ("task", "seed", "index", "question", "completion")
    return json.dumps([row.get(name) for name in names])


def brief(row: Row) -> Row:
    """Return a line without what is on disk and need not be kept in memory."""
    return {name: value for name, value in row.items() if name != "messages"}


def sample_of(row: Row) -> Sample:
    """Return the sample that a line is of."""
    return Sample(
        task=row["task"],
        category=row.get("category", ""),
        question=row.get("question", ""),
        score=row.get("score"),
        outcome=row["outcome"],
        is_truncated=row.get("finish_reason") in TRUNCATED,
        row=brief(row),
    )


def is_row(row: object) -> bool:
    """Say whether a line is one of samples.jsonl."""
    if not isinstance(row, dict):
        return False
    names = ("task", "outcome", "category", "question")
    score = row.get("score", 0.0)
    is_score = score is None or isinstance(score, (int, float))
    is_text = all(isinstance(row.get(name, ""), str) for name in names)
    has_both = "task" in row and "outcome" in row
    return is_text and has_both and is_score and 0.0 <= (score or 0.0) <= 1.0


def read_rows(path: Path) -> list[Row]:
    """Read a file without messages, of several lines about one completion the last.

    A line that a kill left half, or that somebody has damaged, is passed over; how
    many they are is said.

    Raises:
        OSError: It cannot be read.
    """
    rows: dict[str, Row] = {}
    damaged = 0
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                row = None
            if is_row(row):
                rows[key_of(row)] = brief(row)
            else:
                damaged += 1
    if damaged:
        logger.warning("%s: %d lines are no samples", path, damaged)
    return list(rows.values())
