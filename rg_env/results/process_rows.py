"""The file of rows that `process` writes, and that it continues."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import msgspec

from rg_env.executor import in_thread
from rg_env.group_encoding import encode_group
from rg_env.logs import should_log
from rg_env.results.result_file import ResultFile, read_lines, result_files
from rg_env.results.samples import pick
from rg_env.run.group import Group, count_rollouts, groups_in, has_variance
from rg_env.run.group_loop import RunStoppedError
from rg_env.run.ledger import Ending
from rg_env.settings.setting_checks import Affects
from rg_env.stream.curriculum import Count, Share

logger = logging.getLogger(__name__)

TOKEN_COLUMNS = ("tokens", "masks", "inference_logprobs")

MAY_DIFFER = (Affects.NOTHING, Affects.EVAL_COMPLETIONS)
"""Settings that affect these may change before a file is continued."""


class RowWriter:
    """The sink of rows: appends each to a JSONL file, where it is on disk at once.

    It replaces the framework's writer, which buffers rows and fails at lone surrogates.

    Args:
        path: The file to write, which does not exist.
        wanted: The path in the settings. It may be that of an existing file.
        with_tokens: Whether rows have the columns of tokens.
    """

    def __init__(self, path: Path, wanted: Path, *, with_tokens: bool = True) -> None:
        self._file = ResultFile(path)
        self._file.open()
        self._wanted = wanted
        self.with_tokens = with_tokens
        self.rows_lost = 0

    @property
    def path(self) -> Path:
        """Where the rows go."""
        return self._file.path

    def write(self, row: Mapping[str, Any]) -> None:
        """Write one row, whole or not at all; its columns of tokens come last."""
        tokens = pick(row, TOKEN_COLUMNS)
        others = {name: value for name, value in row.items() if name not in tokens}
        columns = others | tokens if self.with_tokens else others
        self._file.append(encode_group(columns) + b"\n")

    def close(self) -> None:
        """Close the file, and remove it if it holds nothing; may be called twice."""
        self._file.close()

    async def take(self, group: Group) -> None:
        """Write the rows of a group; end it, unless it is for the trainer."""
        for row in groups_in(group.data):
            try:
                await in_thread(self.write, row)
            except OSError as error:
                self.rows_lost += 1
                why = f"env.data_path_to_save_groups: {self.path}: {error}"
                if not group.is_for_trainer:
                    raise RunStoppedError(why) from error
                # A training goes on: the row is only a copy of the trainer's group.
                if should_log(self.rows_lost):
                    logger.error("row %d is lost: %s", self.rows_lost, why)
            if not group.is_for_trainer:
                group.end(Ending.WRITTEN, count_rollouts(row))

    def resume(
        self, settings: str, total: int, *, even_complete: bool = False
    ) -> WrittenRows:
        """Continue the file of an earlier run with the same settings, if there is one.

        A file with `total` rows is only taken if `even_complete`.
        """
        self.close()
        for file in result_files(self._wanted, settings, MAY_DIFFER):
            self._file = file
            written = read_written(self.path)
            count = len(written[1])
            if count < total or even_complete:
                break
            logger.info("not continued: %s has its %d rows", self.path, count)
        logger.info("rows go to %s: written %d, wanted %d", self.path, count, total)
        return written


def replace_row_writer(env: Any, wanted: str | None, *, with_tokens: bool) -> None:
    """Replace the framework's writer of rows, if it has opened one."""
    if env.jsonl_writer is not None:
        env.jsonl_writer.close()
        path = Path(env.config.data_path_to_save_groups)
        wanted_path = Path(wanted or path)
        env.jsonl_writer = RowWriter(path, wanted_path, with_tokens=with_tokens)


WrittenRows = tuple[set[int], list[tuple[str, float, float | None, bool]]]
"""The global indices of the items, and the arguments of `Feedback.take` for each row,
in the order of the file."""


class _Row(msgspec.Struct):
    task: str
    question: str
    scores: list[float]
    task_scores: Annotated[list[Share], msgspec.Meta(min_length=1)]
    index: Count | None = None  # None for an item of a subclass
    level: Share | None = None


def read_written(path: Path) -> WrittenRows:
    """Read a file of rows."""
    sampled = set[int]()
    results = []
    for _, row in read_lines(path, _Row):
        mean_score = fmean(row.task_scores)
        results.append((row.task, mean_score, row.level, has_variance(row.scores)))
        if row.index is not None:
            sampled.add(row.index)
    return sampled, results
