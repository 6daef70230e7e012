"""Dump files: one JSON object a line, each line on disk when its group is accepted.

    reasoning_gym_environment_rollouts_{uuid}_{batch:04d}.jsonl.part    being written
    reasoning_gym_environment_rollouts_{uuid}_{batch:04d}.jsonl         complete

"On disk" survives the end of the process, not the loss of power: only a complete file
is synced.

A file is complete when it holds `groups_per_file` groups or the run ends. Its writer
holds a lock on the file; a `.part` file that nobody locks was left by a process that
was killed, and `recover_unfinished` completes it: whole lines stay, a torn one goes.

Disk full, read-only, folder gone: the lines wait in memory up to a bound and are
written when the disk takes them again, all into one file; what the bound turns away
is counted. No complete file is ever overwritten.

Nothing here is asynchronous. Calls block on the disk, so they belong off the event
loop, one at a time for one writer.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import operator
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

logger = logging.getLogger(__name__)

PART_SUFFIX = ".part"

MAX_WAITING_GROUPS = 200
"""Groups held in memory while the disk takes none; about 200 MB at 8k tokens."""

PROGRESS_EVERY_GROUPS = 10

LOCK_TRIES = 100
LOCK_PAUSE_S = 0.01


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


def _try_lock(file: BinaryIO) -> bool | None:
    """Lock a file, if nobody else has; None where the file system knows no locks."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_in_place(file: BinaryIO) -> bool:
    """Say whether an open file is still the one that its name leads to."""
    try:
        named = Path(file.name).stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return os.path.samestat(os.fstat(file.fileno()), named)


def _open_part(part: Path) -> BinaryIO:
    """Open a file to append to, under its lock where there are locks.

    Raises:
        OSError: The disk refuses, or another process keeps the lock.
    """
    for _ in range(LOCK_TRIES):
        file = part.open("ab", buffering=0)
        # A recovery may lock and remove the file while it is still empty.
        if _try_lock(file) is not False and _is_in_place(file):
            return file
        file.close()
        time.sleep(LOCK_PAUSE_S)
    raise OSError(f"{part} is being written by another process")


def recover_unfinished(folder: Path) -> list[Path]:
    """Complete what killed processes left in a dump folder.

    Returns:
        The files that were completed. A left file without a whole line is removed; a
        file that a living process is writing is left alone, and so is every one where
        the file system knows no locks. What cannot be completed is logged.
    """
    recovered = []
    for part in sorted(folder.glob(f"*.jsonl{PART_SUFFIX}")):
        try:
            complete = _recover(part)
        except FileNotFoundError:
            continue  # another process was quicker
        except OSError as error:
            logger.warning("%s cannot be completed: %s", part, error)
            continue
        if complete is not None:
            recovered.append(complete)
    return recovered


def _recover(part: Path) -> Path | None:
    with part.open("r+b") as file:
        if not _try_lock(file) or not _is_in_place(file):
            return None
        whole = file.read().rfind(b"\n") + 1
        file.truncate(whole)
        if whole == 0:
            part.unlink()
            return None
        complete = part.with_suffix("")
        if complete.exists():
            raise FileExistsError(f"{complete.name} is there already")
        part.rename(complete)
        return complete


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
        groups_lost: Groups that neither the disk nor the bounded memory took, or that
            JSON cannot hold.
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
        self._lost_said = 0
        self.buffer: list[dict[str, Any]] = []
        self.batch_num = 0
        self.groups_total = 0
        self.groups_lost = 0

    @property
    def path(self) -> Path:
        """The name that the file being written will have when it is complete."""
        name = f"{self._stem}_{self.run_uuid}_{self.batch_num:04d}.jsonl"
        return self.folder / name

    @property
    def _num_waiting(self) -> int:
        return len(self.buffer) - self._num_on_disk

    def write(self, group: dict[str, Any]) -> None:
        """Accept a group; it is on disk when this returns, unless the disk refuses."""
        self.buffer.append(group)
        self._flush()
        if self._num_waiting > MAX_WAITING_GROUPS:
            self.buffer.pop()
            self.groups_lost += 1
            return
        self.groups_total += 1
        in_file = len(self.buffer)
        if in_file >= self._groups_per_file and not self._num_waiting:
            self.finish()
            self._forget_overdue()
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
        if self._num_waiting or self._file is None:
            return None
        part = Path(self._file.name)
        complete = part.with_suffix("")
        try:
            if self.buffer:
                os.fsync(self._file.fileno())
                part.rename(complete)
            else:
                part.unlink(missing_ok=True)
        except OSError as error:
            self._say_refused(error)
            return None
        self._file.close()
        self._file = None
        if not self.buffer:
            return None
        logger.info("wrote %d groups to %s", len(self.buffer), complete)
        self.buffer.clear()
        self._num_on_disk = 0
        self.batch_num += 1
        self._say_accepted()
        return complete

    def _forget_overdue(self) -> None:
        """Keep the memory bounded where all is on disk but no file can be completed."""
        overdue = len(self.buffer) - self._groups_per_file - MAX_WAITING_GROUPS
        if overdue > 0:
            del self.buffer[:overdue]
            self._num_on_disk -= overdue

    def _flush(self) -> None:
        """Write the groups that are not on disk yet, each as one whole line."""
        try:
            file = self._current_file()
            while self._num_waiting:
                self._write_next(file)
        except OSError as error:
            self._say_refused(error)
            return
        if len(self.buffer) < self._groups_per_file:
            self._say_accepted()

    def _write_next(self, file: BinaryIO) -> None:
        """Write the first waiting group; one that JSON cannot hold is dropped."""
        try:
            line = encode_line(self.buffer[self._num_on_disk])
        except (TypeError, ValueError, RecursionError) as error:
            del self.buffer[self._num_on_disk]
            self.groups_lost += 1
            logger.error("%s: a group cannot be dumped: %s", self.path.name, error)
            return
        self._append(file, line)
        self._num_on_disk += 1

    def _current_file(self) -> BinaryIO:
        """Return the file being written, opened if need be."""
        if self._file is not None and not _is_in_place(self._file):
            # Somebody removed it; the buffer holds all that was in it.
            self._file.close()
            self._file = None
            self._num_on_disk = 0
        if self._file is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            while self.path.exists():
                self.batch_num += 1
            self._file = _open_part(self.path.with_name(self.path.name + PART_SUFFIX))
        return self._file

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
                self._num_waiting,
                MAX_WAITING_GROUPS,
            )
        self._disk_refuses = True

    def _say_accepted(self) -> None:
        if self._disk_refuses:
            logger.warning("%s: the disk takes groups again", self.folder)
        self._disk_refuses = False

    def close(self) -> None:
        """Complete the file being written; what the disk refuses is counted lost."""
        self.finish()
        if self._num_waiting:
            self.groups_lost += self._num_waiting
            del self.buffer[self._num_on_disk :]
            self.finish()
        if self._file is not None:
            self._file.close()
            self._file = None
        if self.groups_lost > self._lost_said:
            logger.error("%s: %d groups were lost", self.folder, self.groups_lost)
            self._lost_said = self.groups_lost

    def state_dict(self) -> dict[str, int]:
        """Return the counters that a resumed run continues."""
        return {"batch_num": self.batch_num, "groups_total": self.groups_total}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Continue the counters; a file being written is completed first.

        Raises:
            ValueError: A counter is missing or negative.
        """
        try:
            counters = [operator.index(state[k]) for k in ("batch_num", "groups_total")]
        except (KeyError, TypeError):
            counters = [-1]
        if min(counters) < 0:
            raise ValueError(f"dump counters must be at least 0, found {state!r}")
        self.finish()
        self.batch_num, self.groups_total = counters
