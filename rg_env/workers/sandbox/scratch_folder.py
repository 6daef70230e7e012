"""Empties the folders that jobs write into.

`shutil.rmtree` recurses, so a thousand nested folders would crash the process that
cleans up. Here a nested folder is first moved to the top.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def empty(folder: Path) -> None:
    """Delete the contents of a folder, as far as possible."""
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
                # Moving a folder changes its ".." entry, so it must be writable.
                with contextlib.suppress(OSError):
                    path.chmod(0o700)
                count += 1
                pending.append(path.rename(f"{prefix}-{count}"))
        if current != folder:
            with contextlib.suppress(OSError):
                current.rmdir()


def remove(folder: Path) -> None:
    """Delete a folder with its contents, as far as possible."""
    empty(folder)
    with contextlib.suppress(OSError):
        folder.rmdir()


def _scan(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []
