"""Dump files: the groups and metrics of a run, written on a thread of their own.

    reasoning_gym_environment_rollouts_{uuid}_{batch:04d}.jsonl.part    being written
    reasoning_gym_environment_rollouts_{uuid}_{batch:04d}.jsonl         complete

A file is complete when it is full or the run ends; none is ever overwritten. While the
disk refuses, lines wait in memory up to a limit, and those beyond it are counted as
lost. One thread does all encoding and writing, so groups are written in the order of
the calls, also if a caller is cancelled.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import math
import numbers
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeVar

from rg_env.group_encoding import encode_for_file, encode_group
from rg_env.line_file import PART_SUFFIX, LineFile, recover_unfinished
from rg_env.run.group import Group

logger = logging.getLogger(__name__)

T = TypeVar("T")

METRICS_FOLDER = "metrics"
PROGRESS_EVERY = 10  # groups, between two lines of the log


@dataclasses.dataclass
class DumpWriter:
    """Writes the groups of one kind into numbered files; calls block on the disk.

    Attributes:
        dumps: Has the folder and the id of the run, which file names contain.
        stem: The beginning of the file names.
        groups_per_file: Number of groups in a complete file.
        subfolder: The folder of the files, below that of `dumps`.
        batch_num: Number of the file being written, or of the next one.
        groups_total: Number of accepted groups, including those of continued runs.
        groups_lost: Number of groups that reached neither the disk nor the memory.
    """

    dumps: Dumps
    stem: str
    groups_per_file: int
    subfolder: str = ""
    batch_num: int = 0
    groups_total: int = 0
    groups_lost: int = 0
    _buffer: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    _handed_over: int = 0  # number of groups in the buffer that the file has
    _file: LineFile | None = None

    @property
    def buffer(self) -> list[dict[str, Any]]:
        """The groups of the file, then those that a caller adds to be written next."""
        return self._buffer

    @buffer.setter
    def buffer(self, groups: list[dict[str, Any]]) -> None:
        self._buffer[self._handed_over :] = groups

    @property
    def groups_waiting(self) -> int:
        """Number of groups in memory that are not on disk yet."""
        file = self._file  # read once: the thread of the dumps may replace it
        return len(file.queued) if file else 0

    @property
    def folder(self) -> Path:
        """The folder of its files."""
        return Path(self.dumps.folder, self.subfolder)

    def _current_file(self) -> LineFile:
        """Return the file being written, or begin the next one."""
        while self._file is None:
            name = f"{self.stem}_{self.dumps.run_uuid}_{self.batch_num:04d}.jsonl"
            if (self.folder / name).exists():
                self.batch_num += 1
            else:
                self._file = LineFile(self.folder / f"{name}{PART_SUFFIX}")
        return self._file

    def write(self, group: dict[str, Any]) -> None:
        """Accept a group; it is on disk when this returns, unless the disk refuses."""
        self._buffer.append(group)
        self.groups_total += 1
        self._hand_over()
        if self._handed_over >= self.groups_per_file:
            self.finish()

    def _hand_over(self) -> None:
        """Give the file the groups that it does not have yet."""
        # Another thread may append groups to the buffer at the same time.
        while self._handed_over < len(self._buffer):
            if not self._append(self._buffer[self._handed_over]):
                del self._buffer[self._handed_over]
                self._lose(1)
                continue
            self._handed_over += 1
            if self._handed_over % PROGRESS_EVERY == 0:
                progress = f"{self._handed_over} of {self.groups_per_file} groups"
                logger.info("%s: %s", self.stem, progress)

    def _append(self, group: dict[str, Any]) -> bool:
        """Append a group to the file; return False if it is lost."""
        try:
            line = encode_group(group)
        except (TypeError, ValueError, RecursionError) as error:
            logger.error("%s: a group cannot be dumped: %s", self.stem, error)
            return False
        return self._current_file().append_or_queue(line + b"\n")

    def _lose(self, groups: int) -> None:
        self.groups_lost += groups
        self.groups_total -= groups

    def finish(self, *, is_last: bool = False) -> Path | None:
        """Complete the file and return its path; None if the disk refuses.

        With `is_last`, groups that the disk refuses are counted as lost.
        """
        self._hand_over()
        file = self._file
        if file is None or not (file.flush() or is_last):
            return None
        if lost := len(file.queued):
            self._lose(lost)
            file.queued.clear()  # without them, the file can be completed
            logger.error("%s: %d groups were lost", self.stem, self.groups_lost)
        try:
            complete = file.complete()
        except OSError as error:
            logger.error("%s cannot be completed: %s", file.path, error)
            return None
        if complete is not None:
            logger.info("wrote %d groups to %s", self._handed_over - lost, complete)
            self.batch_num += 1
        del self._buffer[: self._handed_over]
        self._file = None
        self._handed_over = 0
        return complete

    def close(self) -> None:
        """Complete the file being written; groups that the disk refuses are lost."""
        self.finish(is_last=True)
        if self._file is not None:
            self._file.close()
            self._file = None

    def state_dict(self) -> dict[str, int]:
        """Return the counters."""
        return {"batch_num": self.batch_num, "groups_total": self.groups_total}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue the counters; a file being written is completed first."""
        batch_num = int(state["batch_num"])
        groups_total = int(state["groups_total"])
        self.finish()
        self.batch_num = batch_num
        self.groups_total = groups_total + self.groups_waiting


class Dumps:
    """The dump files of a run: good groups, failed ones, unsent ones, and metrics.

    Attributes:
        folder: The folder of the next files.
        run_uuid: The id of the run in the names of the next files.
        versions: Versions of the software, for the lines of groups.
        model: Name of the model, for all lines.
        saved: Writes the good groups.
        failed: Writes the groups without any score above 0.
        unsent: Writes the groups that could not be sent.
    """

    def __init__(self, config: Any) -> None:
        self._config = config
        self.folder = config.data_dumps_dir
        self.run_uuid = str(uuid.uuid4())
        self.versions: dict[str, str] = {}
        self.model = ""
        self._step: int | None = None  # of the newest metrics
        self._metrics_file: LineFile | None = None
        self._is_closed = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="dumps")
        name = "reasoning_gym_environment"
        self.saved = DumpWriter(self, f"{name}_rollouts", 100)
        self.failed = DumpWriter(self, f"{name}_FAILED_rollouts", 50)
        self.unsent = DumpWriter(self, f"{name}_UNSENT_rollouts", 50, "unsent")
        self._writers = [self.saved, self.failed, self.unsent]

    def set_metrics_path(self, path: Path) -> None:
        """Write the metrics to another file; call it before the first ones."""
        self._metrics_file = LineFile(path)

    async def _run(self, function: Callable[..., T], *args: Any) -> T:
        future = self._thread.submit(function, *args)
        return await asyncio.shield(asyncio.wrap_future(future))

    async def recover(self) -> None:
        """Complete the files that killed processes left in the folder."""
        for writer in (self.saved, self.unsent):
            for path in await self._run(recover_unfinished, writer.folder):
                logger.warning("completed %s, which a killed process left", path)

    async def take(self, group: Group) -> None:
        """Write a scored group to the files of its kind; on disk when this returns."""
        config = self._config
        line = {**group.line(self.versions, _now()), "model": self.model}
        if self._step is not None:
            line["step"] = self._step
        is_good = is_worth_keeping(group.scores, config.rollout_save_score_threshold)
        if config.dump_rollouts and is_good:
            await self._run(self.saved.write, line)
        if config.dump_failed_rollouts and not any(group.scores):
            await self._run(self.failed.write, line)

    async def keep_unsent(self, group: Mapping[str, Any], reason: str) -> None:
        """Write the group that the trainer should have got, and why it was not sent."""
        line = {"item_id": group.get("task"), "unsent_because": reason, **group}
        await self._run(self.unsent.write, line)

    def write_metrics(
        self, step: int, kind: str, values: Mapping[str, Any], alarms: Sequence[Any]
    ) -> None:
        """Write a line of metrics, see `metrics_line`, without waiting for the disk."""
        self._step = step
        if self._config.dump_metrics and not self._is_closed:
            path = Path(self.folder, METRICS_FOLDER, f"{self.run_uuid}_metrics.jsonl")
            file = self._metrics_file or LineFile(path)
            self._metrics_file = file
            head = {"step": step, "time": _now(), "kind": kind, "model": self.model}
            self._thread.submit(
                lambda: file.append_or_queue(metrics_line(head, values, alarms))
            )

    async def finish(self, writer: DumpWriter) -> None:
        """Complete the file that a writer is writing."""
        await self._run(writer.finish)

    async def close(self) -> None:
        """Complete all files after the lines that wait; may be called twice."""
        if self._is_closed:
            return
        self._is_closed = True
        await self._run(self._close)
        await asyncio.to_thread(self._thread.shutdown)

    def _close(self) -> None:
        for writer in self._writers:
            writer.close()
        if self._metrics_file is not None:
            self._metrics_file.close()

    def losses(self) -> dict[str, int]:
        """Return the number of lost groups, and of those that wait for the disk."""
        return {
            "dump_groups_lost": sum(w.groups_lost for w in self._writers),
            "dump_groups_waiting": sum(w.groups_waiting for w in self._writers),
        }


def is_worth_keeping(scores: Sequence[float], threshold: float) -> bool:
    """Return whether a group is saved as successful: a score is above the threshold.

    Source: atropos 296a0bc, collect_trajectories(); differs: a group in which all are
    right is saved too, and a threshold of 1.0 can be met.
    """
    # No score exceeds 1.0, so a threshold of 1.0 means "perfect".
    return max(scores) > threshold or 1.0 in scores


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def metrics_line(
    head: Mapping[str, Any], values: Mapping[str, Any], alarms: Sequence[Any]
) -> bytes:
    """Return a line of the file of metrics: `head`, all finite values, the alarms."""
    line = {**head}
    for name, value in values.items():
        if isinstance(value, numbers.Real) and math.isfinite(value):
            number = float(value)  # also of a number of numpy
            # A metric cannot replace a value of the head.
            line.setdefault(name, int(number) if number.is_integer() else number)
    if alarms:
        line["alarms"] = alarms
    return encode_for_file(line) + b"\n"
