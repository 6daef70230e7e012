"""Files of JSON lines: a line is written whole or not at all, however a process ends.

A line is on disk when it is appended. It survives the end of the process, but not a
loss of power: only a complete file is synced. The file is locked while its process
lives. An unlocked `.part` file belonged to a process that was killed:
`recover_unfinished` completes it, and cuts off a torn last line.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from rg_env.places import check_regular

logger = logging.getLogger(__name__)

PART_SUFFIX = ".part"

# Lines held in memory while the disk refuses them: 200 MB of groups of 8k tokens.
MAX_QUEUED = 200
MAX_QUEUED_BYTES = 2**29


class LineFile:
    """A file to which whole lines are appended; it is locked if there are locks.

    `open` or the first line creates it and its folder. If somebody removes it, the next
    line creates it again. Calls block on the disk, so they belong off the event loop,
    one at a time.

    Attributes:
        end: The position behind its last whole line, in bytes.
        queued: Lines that the disk has refused so far, in order.
        lost: Number of lines that the queue had no room for.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.end = 0
        self.lost = 0
        self.queued: list[bytes] = []
        self._file: BinaryIO | None = None
        self._is_refused = False

    def open(self, *, must_lock: bool = False) -> LineFile:
        """Open it, and lock it if the file system has locks.

        Args:
            must_lock: Whether to fail if the file system has no locks.

        Raises:
            BlockingIOError: Another process keeps the lock.
            OSError: The disk refuses.
        """
        self.close()
        check_regular(self.path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Unbuffered, so that a line outlives this process once it is appended.
        file = self.path.open("ab", buffering=0)
        is_locked = try_lock(file)
        if is_locked is False or (must_lock and not is_locked):
            file.close()
            raise BlockingIOError(f"{self.path} is being written by another process")
        with self.path.open("rb") as lines:
            self.end = sum(len(line) for line in lines if line.endswith(b"\n"))
        self._file = file
        return self

    @property
    def is_open(self) -> bool:
        """Whether it is open, and still at its path."""
        if self._file is None:
            return False
        try:
            return os.path.samestat(os.fstat(self._file.fileno()), self.path.stat())
        except (FileNotFoundError, NotADirectoryError):
            return False

    def cut(self) -> None:
        """Cut off the torn line that a kill or a full disk has left."""
        if self._file is not None and self._file.seek(0, os.SEEK_END) != self.end:
            self._file.truncate(self.end)

    def append(self, line: bytes) -> None:
        """Append a whole line or nothing.

        Raises:
            OSError: The disk refuses it.
        """
        if not self.is_open:
            self.open()
        self.cut()
        try:
            # A write that fills the disk writes a part of the line and raises nothing.
            if self._file is None or self._file.write(line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        except OSError:
            with contextlib.suppress(OSError):
                self.cut()
            raise
        self.end += len(line)

    def append_or_queue(self, line: bytes) -> bool:
        """Append a line after the queued ones, or queue it if the disk refuses.

        The result is False if the line is lost, because the queue is full.
        """
        self.queued.append(line)
        self.flush()
        size = sum(map(len, self.queued))
        if len(self.queued) <= MAX_QUEUED and size <= MAX_QUEUED_BYTES:
            return True
        del self.queued[-1]
        self.lost += 1
        return False

    def flush(self) -> bool:
        """Append the queued lines; return whether all were written."""
        try:
            while self.queued:
                self.append(self.queued[0])
                del self.queued[0]
        except OSError as error:
            if not self._is_refused:
                logger.error(
                    "%s takes no lines (%s); at most %d wait in memory, the next are"
                    " lost",
                    self.path,
                    error,
                    MAX_QUEUED,
                )
            self._is_refused = True
            return False
        if self._is_refused:
            logger.warning("%s takes lines again; %d were lost", self.path, self.lost)
        self._is_refused = False
        return True

    def complete(self) -> Path | None:
        """Sync it, remove the suffix of its name, and close it; return the new path.

        A file without a whole line is removed, and the result is None.

        Raises:
            OSError: The disk refuses, or the new path exists.
        """
        self.cut()
        complete = self.path.with_suffix("") if self.end else None
        if complete is not None and self._file is not None:
            if complete.exists():
                raise FileExistsError(f"{complete.name} is there already")
            os.fsync(self._file.fileno())
            # While it is locked, so that no recovery takes it for an unfinished file.
            self.path.rename(complete)
        self.close()
        return complete

    def close(self) -> None:
        """Close it, and remove it if it is empty; may be called twice."""
        if self._file is None:
            return
        with contextlib.suppress(OSError):  # an empty file that stays does no harm
            # A symlink, such as /dev/stdout, stays: the user made it.
            is_ours = self.is_open and not self.path.is_symlink()
            if is_ours and not self.path.stat().st_size:
                self.path.unlink()
        self._file.close()
        self._file = None


def try_lock(file: BinaryIO | int) -> bool | None:
    """Lock a file, False if it is locked already, None if there are no locks."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def recover_unfinished(folder: Path) -> list[Path]:
    """Complete the files that killed processes left in a folder; return them.

    A file with only a torn line is removed. A file that a living process is writing is
    skipped, and so is every file if the file system has no locks.
    """
    recovered = []
    for part in sorted(folder.glob(f"*.jsonl{PART_SUFFIX}")):
        if part.is_file() and not part.stat().st_size:
            continue  # perhaps its process has not locked it yet
        file = LineFile(part)
        try:
            if complete := file.open(must_lock=True).complete():
                recovered.append(complete)
        except BlockingIOError:
            continue
        except OSError as error:
            logger.warning("%s cannot be completed: %s", part, error)
            file.close()
    return recovered


def read_groups(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the groups of a dump file, complete or not, without a torn last line."""
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                return
            yield json.loads(line)
