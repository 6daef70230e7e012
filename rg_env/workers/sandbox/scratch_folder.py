"""Folders that jobs write into: emptied whatever a job made of them.

`shutil.rmtree` recurses, so a thousand folders in one another would end the process
that cleans up. Here a folder found inside another is first moved to the top.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


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


def _scan(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []
