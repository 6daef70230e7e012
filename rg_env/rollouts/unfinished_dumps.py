"""What processes leave in a dump folder: files being written, locked while they live.

A `.part` file that nobody locks was left by a process that was killed.
`recover_unfinished` completes it: whole lines stay, a torn one goes.
"""

from __future__ import annotations

import collections
import contextlib
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

SEARCHED_BYTES = 2**20
"""How much of a file is looked through at once."""


def _try_lock(file: BinaryIO) -> bool | None:
    """Lock a file, if nobody else has; None where the file system knows no locks."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def is_in_place(file: BinaryIO) -> bool:
    """Say whether an open file is still the one that its name leads to."""
    try:
        named = Path(file.name).stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return os.path.samestat(os.fstat(file.fileno()), named)


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
        if not _try_lock(file) or not is_in_place(file):
            return None
        whole = _end_of_last_line(file)
        file.truncate(whole)
        if whole == 0:
            part.unlink()
            return None
        complete = part.with_suffix("")
        if complete.exists():
            raise FileExistsError(f"{complete.name} is there already")
        os.fsync(file.fileno())
        part.rename(complete)
        return complete


def _end_of_last_line(file: BinaryIO) -> int:
    """Return where the last whole line of a file ends, 0 where there is none."""
    start = file.seek(0, os.SEEK_END)
    while start > 0:
        before = max(0, start - SEARCHED_BYTES)
        file.seek(before)
        newline = file.read(start - before).rfind(b"\n")
        if newline >= 0:
            return before + newline + 1
        start = before
    return 0


def _count_lines(path: Path) -> int:
    """Count the whole lines of a file."""
    with path.open("rb") as file:
        chunks = iter(lambda: file.read(SEARCHED_BYTES), b"")
        return sum(chunk.count(b"\n") for chunk in chunks)


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
        for path in sorted(folder.iterdir()):
            match = name.fullmatch(path.name)
            if match and int(match.group(1)) >= first:
                left[int(match.group(1))] += _count_lines(path)
    return left
