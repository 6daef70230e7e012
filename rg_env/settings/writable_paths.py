"""Whether a path of the settings can be written, tried before anything is generated.

Nothing is left of a try.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rg_env.errors import SettingError, shown

LONGEST_ADDITION = "_9999.html"
"""What is put behind the name of a file that exists, and of a page beside it."""


def check_folder(field: str, path: str) -> None:
    """Refuse a folder into which no file can be written; nothing is left of the try."""
    with _made(field, path, Path(path)):
        pass


def check_file(field: str, path: str) -> None:
    """Refuse a file that is none, or beside which none can be written."""
    file = Path(path)
    with _made(field, path, file.parent):
        # "." and "data/" are folders, whether they are there or not.
        is_folder = not file.name or path.endswith(("/", "/.", "/..")) or file.is_dir()
        if is_folder or (file.exists() and not file.is_file()):
            raise OSError("it is not a regular file")
        longest = file.parent / f"{file.name}{LONGEST_ADDITION}"
        longest.touch()
        longest.unlink()


@contextlib.contextmanager
def _made(field: str, path: str, folder: Path) -> Iterator[None]:
    """Make a folder with those above it for a while, and try it."""
    missing: list[Path] = []
    try:
        for each in (folder, *folder.parents):
            # A link that leads nowhere is no folder either, and none can be made there.
            if os.path.lexists(each):
                if not each.is_dir():
                    raise OSError(f"{shown(str(each))} is not a folder")
                break
            missing.append(each)
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder):
            yield
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        sentence = f"{field}: {shown(path)} cannot be written ({said})"
        raise SettingError(sentence) from error
    finally:
        for each in missing:
            # It is gone, or another process has written to it in the meantime.
            with contextlib.suppress(OSError, ValueError):
                each.rmdir()
