"""The JSONL file of `process`: one row a group, continued by the same command."""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec

from rg_env.atropos.config import ReasoningGymEnvConfig
from rg_env.items.run_stream import question_digest
from rg_env.off_loop import release_gil
from rg_env.rollouts.group import has_variance
from rg_env.rollouts.json_encoding import encode_group, quick, readable
from rg_env.rollouts.line_file import LineFile, continued
from rg_env.settings import kept_settings
from rg_env.settings.environment_settings import deciding
from rg_env.settings.setting_types import Decides
from rg_env.tasks.curriculum import Count, Share

logger = logging.getLogger(__name__)

DECIDING = deciding(*set(Decides) - {Decides.NOTHING, Decides.EVAL_COMPLETIONS})
"""Settings of the environment that decide rows."""

SAID_FROM_MB = 500
"""A smaller file is read in a few seconds."""


TOKEN_LISTS = ("tokens", "masks", "inference_logprobs")


def settings_path(rows: Path) -> Path:
    """Return where the settings stand that a file of rows was made with."""
    return rows.with_name(f"{rows.name}.settings.yaml")


class RowWriter:
    """Appends rows to a JSONL file, each on disk when `write` returns.

    It stands in for the framework's writer, which buffers and fails on lone surrogates.

    Args:
        file: Where they go.
        made: Folders that were made for it, inner ones first; they go with a file that
            holds nothing.

    Attributes:
        wanted: The name in the settings, which may have been taken.
        settings: What is written beside a file with its first row; None for nothing.
        rows_lost: Rows that the disk did not take.
        with_tokens: Whether rows have their lists of tokens.
    """

    def __init__(self, file: LineFile, made: Sequence[Path] = ()) -> None:
        self._made = made
        self._file = file
        self.wanted = file.path
        self.settings: str | None = None
        self.rows = self.rows_lost = 0
        self.with_tokens = True

    @property
    def path(self) -> Path:
        """Where the rows go."""
        return self._file.path

    def say_where(self) -> None:
        """Log where the rows go, if the name in the settings was taken."""
        if self.path != self.wanted:
            logger.info("%s exists: rows go to %s", self.wanted, self.path)

    def continue_in(self, file: LineFile) -> None:
        """Write to a file that was left instead of this one, which holds nothing."""
        self.close()
        self._made, self._file = (), file

    def write(self, row: Mapping[str, Any]) -> None:
        """Write one row: what people read first, the token lists last.

        Blocks on the disk, and on a long row for a while, and releases the GIL.

        Raises:
            OSError: The disk does not take it; nothing of it is in the file.
        """
        lists = {key: row[key] for key in TOKEN_LISTS if key in row}
        first = {key: value for key, value in row.items() if key not in lists}
        last = lists if self.with_tokens else {}
        # `readable` keeps every text; the lists are numbers, and `quick` is faster.
        head = encode_group(first, readable)
        tail = encode_group(last, quick, release_gil)
        comma = b", " if first and last else b""
        try:
            self._file.restore()
            if self._file.end == 0 and self.settings is not None:
                settings_path(self.path).write_text(self.settings, encoding="utf-8")
            self._file.append(b"%s%s%s\n" % (head[:-1], comma, tail[1:]))
        except OSError:
            self.rows_lost += 1
            raise
        self.rows += 1

    def close(self) -> None:
        """Close the file, and remove it if it holds nothing; may be called twice."""
        self._file.close()
        for folder in self._made:
            with contextlib.suppress(OSError):  # it holds something
                folder.rmdir()


@contextlib.contextmanager
def taking_over_rows(
    env: Any, config: ReasoningGymEnvConfig, *, with_tokens: bool
) -> Iterator[None]:
    """Replace the writer of the file that the framework opens inside, if any.

    Args:
        env: Gets the writer.
        config: Names the file, and afterwards the one that was free.
        with_tokens: Whether rows have token ids.
    """
    wanted = config.data_path_to_save_groups
    above = () if wanted is None else Path(wanted).parents
    made = [folder for folder in above if not folder.exists()]
    yield
    path = config.data_path_to_save_groups
    if env.jsonl_writer is None or path is None:
        env.jsonl_writer = None
        return
    env.jsonl_writer.close()
    env.jsonl_writer = RowWriter(LineFile(Path(path)), made)
    env.jsonl_writer.wanted = Path(wanted or path)
    env.jsonl_writer.with_tokens &= with_tokens


# -- the rows of an interrupted run ---------------------------------------------------


class ResumedRows(NamedTuple):
    """What a resumed run needs to know about the existing rows.

    Attributes:
        sampled: Global index to the task and the digest of the question of each item.
        results: Of each row what `Feedback.take` takes, in the order of the file.
    """

    sampled: dict[int, tuple[str, int]]
    results: list[tuple[str, float, float | None, bool]]


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
            left.sampled[row.index] = row.task, question_digest(row.question)
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
    # Locked before it is read: nobody adds rows in between.
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
