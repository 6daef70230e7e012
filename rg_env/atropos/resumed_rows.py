"""The rows that an ended run of `process` left, and the file of them that is continued.

A file is continued where the settings beside it are the same that decide its rows, no
living process writes it, and it has fewer rows than are asked for.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from rg_env.off_loop import release_gil
from rg_env.rollouts.line_file import LineFile, continued
from rg_env.rollouts.row_writer import RowWriter, settings_path
from rg_env.rollouts.shaping import has_variance
from rg_env.settings import kept_settings
from rg_env.settings.environment_settings import deciding
from rg_env.settings.setting_types import Decides
from rg_env.tasks.feedback import GroupResult
from rg_env.tasks.recent_questions import digest
from rg_env.tasks.task_history import Count, Share

logger = logging.getLogger(__name__)

DECIDING = deciding(*set(Decides) - {Decides.NOTHING, Decides.EVAL_COMPLETIONS})
"""Settings of the environment that decide rows."""

SAID_FROM_MB = 500
"""A smaller file is read in a few seconds."""


class ResumedRows(NamedTuple):
    """What a resumed run needs to know about the existing rows.

    Attributes:
        sampled: Global index to the task and the digest of the question of each item.
        results: Of each row what `Feedback.take` takes, in the order of the file.
    """

    sampled: dict[int, tuple[str, int]]
    results: list[GroupResult]


class _Row(msgspec.Struct):
    """What is read of a line."""

    index: Count
    task: str
    question: str
    level: Share | None
    scores: list[float]
    task_scores: Annotated[list[Share], msgspec.Meta(min_length=1)]


_decoder = msgspec.json.Decoder(_Row)


def _row(line: bytes) -> _Row:
    """Return what is read of a line, ValueError where it is no row."""
    try:
        return _decoder.decode(line)
    except msgspec.DecodeError:  # half a character, which json takes
        return msgspec.convert(json.loads(line), _Row)


def read_resumed(path: Path) -> ResumedRows:
    """Read a file of rows; lines that are none are passed over, which is said.

    Raises:
        OSError: It cannot be read.
    """
    left, damaged = ResumedRows({}, []), 0
    if (megabytes := path.stat().st_size // 2**20) >= SAID_FROM_MB:
        logger.info("reading %s, %d MB", path, megabytes)
    with path.open("rb") as lines:
        for line in lines:
            release_gil()
            try:
                row = _row(line)
            except (ValueError, RecursionError):
                damaged += 1
                continue
            mean_score = sum(row.task_scores) / len(row.task_scores)
            result = row.task, mean_score, row.level, has_variance(row.scores)
            left.results.append(result)
            left.sampled[row.index] = row.task, digest(row.question)
    if damaged:
        logger.warning("%s: %d lines are no rows", path, damaged)
    return left


def resume_rows(
    rows: RowWriter, total: int, *, even_complete: bool = False
) -> ResumedRows:
    """Continue the file of an earlier run, if there is one.

    The name in the settings is tried first, then the numbered names that exist. The log
    says which file is continued, or why the first one is not. This blocks on the disk.

    Args:
        rows: Goes to that file, if its settings are the same.
        total: Rows that are asked for.
        even_complete: Whether a file that has them is taken as well.
    """
    most = math.inf if even_complete else total
    first: OSError | None = None
    for path in _taken_names(rows):
        try:
            file, left = _opened(path, rows.settings or "", most)
        except OSError as why:
            first = first or why
            continue
        rows.continue_in(file)
        there = len(left.results)
        logger.info("continuing %s: rows written %d, wanted %d", path, there, total)
        return left
    if first is not None:
        logger.info("rows go to %s: %s", rows.path, first)
    return ResumedRows({}, [])


def _taken_names(rows: RowWriter) -> Iterator[Path]:
    """Yield the names that were taken when that of the rows was chosen."""
    wanted = rows.wanted
    names = (wanted.with_stem(f"{wanted.stem}_{n}") for n in itertools.count(1))
    every = itertools.chain([wanted], names)
    return itertools.takewhile(lambda path: path != rows.path, every)


def _opened(path: Path, settings: str, most: float) -> tuple[LineFile, ResumedRows]:
    """Return a file that can be continued, locked, and its rows.

    Raises:
        FileExistsError: It is of another run, or complete.
        OSError: It cannot be read or written, or another process writes it.
    """
    why = kept_settings.why_not(settings_path(path), settings, DECIDING)
    if why and path.stat().st_size:
        raise FileExistsError(f"{path} {why}")
    file = continued(path)
    with contextlib.ExitStack() as undo:
        undo.callback(file.close)
        left = read_resumed(path)
        if len(left.results) >= most:
            raise FileExistsError(f"{path} is complete ({len(left.results)} rows)")
        if file.end and not left.results:
            raise FileExistsError(f"{path} has no row that could be continued")
        undo.pop_all()
    return file, left
