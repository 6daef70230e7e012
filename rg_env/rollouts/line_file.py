"""Files of whole lines, each on disk when it is appended, and what is left of them.

A file being written is locked while its process lives. A `.part` file that nobody
locks was left by a process that was killed: `recover_unfinished` completes it, whole
lines stay, a torn one goes.
"""

from __future__ import annotations

import collections
import contextlib
import errno
import fcntl
import logging
import os
import re
import time
from pathlib import Path
from typing import BinaryIO

logger = logging.getLogger(__name__)

PART_SUFFIX = ".part"
LOCK_TRIES = 100
LOCK_PAUSE_S = 0.01


class LineFile:
    """An open file that whole lines are appended to, locked where there are locks.

    Args:
        path: Made with its folder if it is not there.

    Attributes:
        end: Where the last whole line ends, in bytes.

    Raises:
        BlockingIOError: Another process keeps the lock.
        OSError: The disk refuses.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._open()

    def _open(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = _locked(self.path)
        self.end = self._file.seek(0, os.SEEK_END)

    @property
    def is_in_place(self) -> bool:
        """Whether its name still leads to it: nobody removed or replaced it."""
        return _is_in_place(self._file)

    def restore(self) -> None:
        """Make it again, empty, if somebody removed it; raises as a new one."""
        if not self.path.exists():
            self._file.close()
            self._open()

    def append(self, line: bytes) -> None:
        """Append a whole line or nothing, and cut off what an earlier refusal tore.

        Raises:
            OSError: The disk refuses it.
        """
        if self._file.seek(0, os.SEEK_END) != self.end:
            self._file.truncate(self.end)
        try:
            # A write that fills the disk takes a part of the line and raises nothing.
            if self._file.write(line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        except OSError:
            with contextlib.suppress(OSError):
                self._file.truncate(self.end)
            raise
        self.end += len(line)

    def complete(self) -> Path:
        """Sync it, give it its name without the suffix, close it; return the name."""
        complete = self.path.with_suffix("")
        os.fsync(self._file.fileno())
        # While it is locked, so that no recovery takes it for a file that was left.
        self.path.rename(complete)
        self._file.close()
        return complete

    def close(self) -> None:
        """Close it, and remove it if it holds nothing; may be called twice."""
        if self._file.closed:
            return
        with contextlib.suppress(OSError):  # an empty file that stays does no harm
            is_empty = self.path.is_file() and not self.path.stat().st_size
            if is_empty and self.is_in_place:  # and no device such as /dev/null
                self.path.unlink()
        self._file.close()


def try_lock(file: BinaryIO | int) -> bool | None:
    """Lock a file, if nobody else has; None where the file system knows no locks."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def continued(path: Path) -> LineFile:
    """Open and lock a file that is there, without what a killed process left of a line.

    Raises:
        BlockingIOError: Another process keeps the lock.
        OSError: It cannot be read or written.
    """
    file = LineFile(path)
    # The handle of `LineFile` cannot read.
    with path.open("r+b") as lines:
        file.end = _whole_bytes(lines)
        lines.truncate(file.end)
    return file


def _whole_bytes(file: BinaryIO) -> int:
    """Return where the last whole line of a file ends."""
    return sum(len(line) for line in file if line.endswith(b"\n"))


def _is_in_place(file: BinaryIO) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), Path(file.name).stat())
    except (FileNotFoundError, NotADirectoryError):
        return False


def _locked(path: Path) -> BinaryIO:
    for _ in range(LOCK_TRIES):
        # Unbuffered, so that a line outlives this process once it is appended.
        file = path.open("ab", buffering=0)
        # A recovery may lock and remove the file while it is still empty.
        if try_lock(file) is not False and _is_in_place(file):
            return file
        file.close()
        time.sleep(LOCK_PAUSE_S)
    raise BlockingIOError(f"{path} is being written by another process")


def recover_unfinished(folder: Path) -> list[Path]:
    """Complete what killed processes left in a dump folder; return those files.

    A left file without a whole line is removed; a file that a living process is writing
    is left alone, and so is every one where the file system knows no locks.
    """
    recovered = []
    for part in sorted(folder.glob(f"*.jsonl{PART_SUFFIX}")):
        try:
            if _recover(part):
                recovered.append(part.with_suffix(""))
        except FileNotFoundError:
            continue  # another process was quicker
        except OSError as error:
            logger.warning("%s cannot be completed: %s", part, error)
    return recovered


def _recover(part: Path) -> bool:
    complete = part.with_suffix("")
    with part.open("r+b") as file:
        if not try_lock(file) or not _is_in_place(file):
            return False
        whole = _whole_bytes(file)
        file.truncate(whole)
        if whole == 0:
            part.unlink()
            return False
        if complete.exists():
            raise FileExistsError(f"{complete.name} is there already")
        os.fsync(file.fileno())
        part.rename(complete)
    return True


def count_left(folder: Path, stem: str, first: int) -> dict[int, int]:
    """Return file number to groups of what one process left, complete or not.

    Counted from the number `first` on; the folder need not exist.
    """
    name = re.compile(rf"{re.escape(stem)}_(\d+)\.jsonl({re.escape(PART_SUFFIX)})?")
    left: collections.Counter[int] = collections.Counter()
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            match = name.fullmatch(path.name)
            if match and int(match[1]) >= first:
                with path.open("rb") as file:
                    left[int(match[1])] += sum(line.endswith(b"\n") for line in file)
    return left
