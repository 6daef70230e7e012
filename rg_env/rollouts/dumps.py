"""Dump files: one JSON object a line, each line on disk when its group is accepted.

    reasoning_gym_environment_rollouts_{uuid}_{batch:04d}.jsonl.part    being written
    reasoning_gym_environment_rollouts_{uuid}_{batch:04d}.jsonl         complete

A file is complete when it holds `groups_per_file` groups or the run ends. Its writer
holds a lock on the file; a `.part` file that nobody locks was left by a process that
was killed, and `recover_unfinished` completes it: whole lines stay, a torn one goes.

Disk full, read-only, folder gone: the lines wait in memory up to a bound and are
written when the disk takes them again; what the bound turns away is counted.

Nothing here is asynchronous. Calls block on the disk, so they belong off the event
loop, one at a time for one writer.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

logger = logging.getLogger(__name__)

PART_SUFFIX = ".part"

MAX_WAITING_GROUPS = 200
"""Groups held in memory while the disk takes none; about 200 MB at 8k tokens."""

PROGRESS_EVERY_GROUPS = 10


def encode_line(group: dict[str, Any]) -> bytes:
    """Encode a group as one line; any text survives, lone surrogates included."""
    text = json.dumps(group, ensure_ascii=False, allow_nan=False, default=str)
    try:
        return text.encode("utf-8") + b"\n"
    except UnicodeEncodeError:
        escaped = json.dumps(group, ensure_ascii=True, allow_nan=False, default=str)
        return escaped.encode("ascii") + b"\n"


def read_groups(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the groups of a dump file, complete or not; a torn last line ends it."""
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                return
            yield json.loads(line)


def _try_lock(file: BinaryIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def recover_unfinished(folder: Path) -> list[Path]:
    """Complete what killed processes left in a dump folder.

    Returns:
        The files that were completed. A left file without a whole line is removed; a
        file that a living process is writing is left alone.
    """
    recovered = []
    for part in sorted(folder.glob(f"*.jsonl{PART_SUFFIX}")):
        with part.open("r+b") as file:
            if not _try_lock(file):
                continue
            content = file.read()
            whole = content.rfind(b"\n") + 1
            file.truncate(whole)
            if whole == 0:
                part.unlink()
                continue
            complete = part.with_suffix("")
            part.rename(complete)
            recovered.append(complete)
    return recovered


class DumpWriter:
    """Writes the groups of one kind into numbered files.

    Args:
        folder: Where the files go; made when the first group comes.
        stem: What the file names begin with.
        run_uuid: Names the process, so that several can share a folder.
        groups_per_file: Groups in a complete file, at least 1.

    Attributes:
        buffer: The groups of the file being written; those beyond the ones on disk
            are written at the next call, so that a caller may append its own.
        batch_num: Number of the file being written, from 0.
        groups_total: Groups accepted since the run began.
        groups_lost: Groups that neither the disk nor the bounded memory took.
    """

    def __init__(
        self, folder: Path, stem: str, run_uuid: str, groups_per_file: int
    ) -> None:
        self.folder = folder
        self.run_uuid = run_uuid
        self._stem = stem
        self._groups_per_file = groups_per_file
        self._file: BinaryIO | None = None
        self._num_on_disk = 0
        self._disk_refuses = False
        self.buffer: list[dict[str, Any]] = []
        self.batch_num = 0
        self.groups_total = 0
        self.groups_lost = 0

    @property
    def path(self) -> Path:
        """The name that the file being written will have when it is complete."""
        name = f"{self._stem}_{self.run_uuid}_{self.batch_num:04d}.jsonl"
        return self.folder / name

    def write(self, group: dict[str, Any]) -> None:
        """Accept a group; it is on disk when this returns, unless the disk refuses."""
        if len(self.buffer) - self._num_on_disk >= MAX_WAITING_GROUPS:
            self.groups_lost += 1
            return
        self.buffer.append(group)
        self.groups_total += 1
        self._flush()
        in_file = len(self.buffer)
        if in_file >= self._groups_per_file and self._num_on_disk == in_file:
            self.finish()
        elif in_file % PROGRESS_EVERY_GROUPS == 0:
            logger.info(
                "%s: %d of %d groups", self.path.name, in_file, self._groups_per_file
            )

    def finish(self) -> Path | None:
        """Complete the file being written and begin the next.

        Returns:
            The complete file; None where there was nothing to write or the disk
            refuses, in which case the groups stay in `buffer`.
        """
        if self.buffer:
            self._flush()
        if self._num_on_disk < len(self.buffer) or self._file is None:
            return None
        complete = self.path
        part = complete.with_name(complete.name + PART_SUFFIX)
        try:
            os.fsync(self._file.fileno())
            part.rename(complete)
        except OSError as error:
            self._say_refused(error)
            return None
        self._file.close()
        self._file = None
        logger.info("wrote %d groups to %s", len(self.buffer), complete)
        self.buffer.clear()
        self._num_on_disk = 0
        self.batch_num += 1
        return complete

    def _flush(self) -> None:
        """Write the groups that are not on disk yet, each as one whole line."""
        try:
            file = self._file or self._open()
            for group in self.buffer[self._num_on_disk :]:
                self._append(file, encode_line(group))
                self._num_on_disk += 1
        except OSError as error:
            self._say_refused(error)
            return
        if self._disk_refuses:
            logger.warning("%s: the disk takes groups again", self.folder)
            self._disk_refuses = False

    def _open(self) -> BinaryIO:
        self.folder.mkdir(parents=True, exist_ok=True)
        part = self.path.with_name(self.path.name + PART_SUFFIX)
        file = part.open("ab", buffering=0)
        if not _try_lock(file):
            file.close()
            raise OSError(f"{part} is being written by another process")
        self._file = file
        return file

    @staticmethod
    def _append(file: BinaryIO, line: bytes) -> None:
        """Append a whole line or nothing."""
        end = file.seek(0, os.SEEK_END)
        try:
            written = file.write(line)
            if written != len(line):
                raise OSError(f"only {written} of {len(line)} bytes were written")
        except OSError:
            with contextlib.suppress(OSError):
                file.truncate(end)
            raise

    def _say_refused(self, error: OSError) -> None:
        if not self._disk_refuses:
            logger.error(
                "%s takes no groups (%s); %d wait in memory, at most %d will",
                self.folder,
                error,
                len(self.buffer) - self._num_on_disk,
                MAX_WAITING_GROUPS,
            )
        self._disk_refuses = True

    def close(self) -> None:
        """Complete the file being written; what the disk refuses is counted lost."""
        self.finish()
        waiting = len(self.buffer) - self._num_on_disk
        if waiting:
            self.groups_lost += waiting
            logger.error("%s: %d groups could not be written", self.folder, waiting)
        if self._file is not None:
            self._file.close()
            self._file = None
        del self.buffer[self._num_on_disk :]

    def state_dict(self) -> dict[str, int]:
        """Return the counters that a resumed run continues."""
        return {"batch_num": self.batch_num, "groups_total": self.groups_total}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Continue the counters; a file being written is completed first.

        Raises:
            ValueError: A counter is missing or negative.
        """
        values = [state.get(key) for key in ("batch_num", "groups_total")]
        if not all(isinstance(value, int) and value >= 0 for value in values):
            raise ValueError(f"dump counters must be at least 0, found {state!r}")
        self.finish()
        self.batch_num, self.groups_total = state["batch_num"], state["groups_total"]
