"""The rows of `process`."""

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
from rg_env.run.group import Ending, Group, count_rollouts, groups_in, has_variance
from rg_env.run.group_loop import RunStoppedError
from rg_env.settings.setting_checks import Affects
from rg_env.stream.curriculum import Count, Share

logger = logging.getLogger(__name__)

NUMBERS = ("tokens", "masks", "inference_logprobs")


class RowWriter:
    """The sink of rows: appends them to a JSONL file, each on disk at once.

    It stands in for the framework's writer, which buffers and fails on lone surrogates.
    `path` is free; `wanted` is the name in the settings, which may have been taken.
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
        """Write one row, whole or not at all: what people read comes first."""
        numbers = {name: row[name] for name in NUMBERS if name in row}
        first = {name: value for name, value in row.items() if name not in numbers}
        whole = first | numbers if self.with_tokens else first
        self._file.append(encode_group(whole) + b"\n")

    def close(self) -> None:
        """Close the file, and remove it if it holds nothing; may be called twice."""
        self._file.close()

    async def take(self, group: Group) -> None:
        """Write the row of a group; the ending of one that nobody else gets."""
        for part in groups_in(group.data):
            try:
                await in_thread(self.write, part)
            except OSError as error:
                self.rows_lost += 1
                why = f"env.data_path_to_save_groups: {self.path}: {error}"
                if not group.is_for_trainer:
                    raise RunStoppedError(why) from error
                # The trainer's group is worth more than the copy of it.
                if should_log(self.rows_lost):
                    logger.error("row %d is lost: %s", self.rows_lost, why)
            if not group.is_for_trainer:
                group.end(Ending.WRITTEN, count_rollouts(part))

    def resume(
        self, settings: str, total: int, *, even_complete: bool = False
    ) -> Resumed:
        """Continue the file of an ended run of the same settings, if there is one.

        A file that has its `total` of rows is taken only if `even_complete`.
        """
        self.close()
        for file in result_files(self._wanted, "", settings, Affects.EVAL_COMPLETIONS):
            self._file = file
            found = read_resumed(self.path)
            there = len(found[1])
            if there < total or even_complete:
                break
            logger.info("not continued: %s has its %d rows", self.path, there)
        logger.info("rows go to %s: written %d, wanted %d", self.path, there, total)
        return found


def take_over_rows(env: Any, wanted: str | None, *, with_tokens: bool) -> None:
    """Replace the writer of the file that the framework has opened, if any."""
    if env.jsonl_writer is not None:
        env.jsonl_writer.close()
        path = Path(env.config.data_path_to_save_groups)
        wanted_path = Path(wanted or path)
        env.jsonl_writer = RowWriter(path, wanted_path, with_tokens=with_tokens)


Resumed = tuple[set[int], list[tuple[str, float, float | None, bool]]]
"""The global index of each item, and what `Feedback.take` takes of each row, in the
order of the file."""


class _Row(msgspec.Struct):
    task: str
    question: str
    scores: list[float]
    task_scores: Annotated[list[Share], msgspec.Meta(min_length=1)]
    index: Count | None = None  # the item of a subclass has none
    level: Share | None = None


def read_resumed(path: Path) -> Resumed:
    """Read a file of rows."""
    sampled = set[int]()
    results = []
    for _, row in read_lines(path, _Row):
        if row is not None:
            mean_score = fmean(row.task_scores)
            results.append((row.task, mean_score, row.level, has_variance(row.scores)))
            if row.index is not None:
                sampled.add(row.index)
    return sampled, results
