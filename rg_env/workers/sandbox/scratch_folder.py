"""Folders that jobs write into: measured and emptied whatever a job made of them.

`shutil.rmtree` recurses, so a thousand folders in one another would end the process
that cleans up. Here a folder found inside another is first moved to the top.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from pathlib import Path

MAX_BYTES = 64 * 2**20
MAX_ENTRIES = 5_000
MAX_PATH_CHARS = 1_000


def empty(folder: Path) -> None:
    """Delete what is in a folder; what cannot be deleted stays."""
    pending = [folder]
    prefix = folder / os.urandom(16).hex()
    count = 0
    while pending:
        current = pending.pop()
        for entry in _scan(current):
            path = Path(entry.path)
            with contextlib.suppress(OSError):
                if not entry.is_dir(follow_symlinks=False):
                    path.unlink()
                    continue
                # Moving a folder writes into it, its ".." entry.
                with contextlib.suppress(OSError):
                    path.chmod(0o700)
                count += 1
                pending.append(path.rename(f"{prefix}-{count}"))
        if current != folder:
            with contextlib.suppress(OSError):
                current.rmdir()


def remove(folder: Path) -> None:
    """Delete a folder with all that is in it, as far as that can be done."""
    empty(folder)
    with contextlib.suppress(OSError):
        folder.rmdir()


def is_over_limit(folder: Path) -> bool:
    """Say whether a folder holds more than it may: bytes, entries, long paths."""
    pending, num_bytes, num_entries = [str(folder)], 0, 0
    while pending:
        # A job may make entries faster than they can be listed.
        entries = _scan(Path(pending.pop()), MAX_ENTRIES + 1)
        num_entries += len(entries)
        if num_entries > MAX_ENTRIES:
            return True
        for entry in entries:
            # A check takes the square of the depth.
            if len(entry.path) > MAX_PATH_CHARS:
                return True
            # What changes under our eyes is counted the next time.
            with contextlib.suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                else:
                    num_bytes += entry.stat(follow_symlinks=False).st_size
        if num_bytes > MAX_BYTES:
            return True
    return False


def _scan(folder: Path, limit: int | None = None) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(itertools.islice(entries, limit))
    except OSError:
        return []
