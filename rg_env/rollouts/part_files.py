"""Files being written, each locked while its process lives, and what is left of them.

A `.part` file that nobody locks was left by a process that was killed.
`recover_unfinished` completes it: whole lines stay, a torn one goes.
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


def append_line(file: BinaryIO, line: bytes, end: int) -> int:
    """Append a whole line or nothing, and cut off what an earlier refusal tore.

    Args:
        file: Unbuffered.
        line: The line.
        end: Where the last whole line ends.

    Returns:
        Where this line ends.

    Raises:
        OSError: The disk refuses it.
    """
    if file.seek(0, os.SEEK_END) != end:
        file.truncate(end)
    try:
        if file.write(line) != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), file.name)
    except OSError:
        with contextlib.suppress(OSError):
            file.truncate(end)
        raise
    return end + len(line)


def _try_lock(file: BinaryIO) -> bool | None:
    """Lock a file, if nobody else has; None where the file system knows no locks."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def locked(path: Path) -> BinaryIO | None:
    """Lock a file of lines, and cut off what a killed process left of a line.

    Returns:
        The file, which is locked until it is closed; None where another process has it.

    Raises:
        OSError: It cannot be read or written.
    """
    file = path.open("r+b")
    if _try_lock(file) is False:
        file.close()
        return None
    file.truncate(sum(len(line) for line in file if line.endswith(b"\n")))
    return file


def is_in_place(file: BinaryIO) -> bool:
    """Say whether an open file is still the one that its name leads to."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), Path(file.name).stat())
    except (FileNotFoundError, NotADirectoryError):
        return False


def open_part(part: Path) -> BinaryIO:
    """Open a file to append to, under its lock where there are locks.

    Raises:
        OSError: The disk refuses, or another process keeps the lock.
    """
    for _ in range(LOCK_TRIES):
        file = part.open("ab", buffering=0)
        # A recovery may lock and remove the file while it is still empty.
        if _try_lock(file) is not False and is_in_place(file):
            return file
        file.close()
        time.sleep(LOCK_PAUSE_S)
    raise OSError(f"{part} is being written by another process")


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
        if not _try_lock(file) or not is_in_place(file):
            return False
        whole = sum(len(line) for line in file if line.endswith(b"\n"))
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
    """Count the groups in the files of one process, complete or not.

    Args:
        folder: Where the files are; it need not exist.
        stem: What their names begin with, up to the number.
        first: The lowest number that is looked at.

    Returns:
        File number to groups.
    """
    name = re.compile(rf"{re.escape(stem)}_(\d+)\.jsonl({re.escape(PART_SUFFIX)})?")
    left: collections.Counter[int] = collections.Counter()
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            match = name.fullmatch(path.name)
            if match and int(match.group(1)) >= first:
                with path.open("rb") as file:
                    lines = sum(line.endswith(b"\n") for line in file)
                left[int(match.group(1))] += lines
    return left
