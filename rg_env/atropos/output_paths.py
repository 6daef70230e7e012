"""Whether a file or folder can be written, tried before there is anything to write.

What is made to try it is removed again, so that a refused start leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rg_env.errors import SettingError, shown

LONGEST_ADDITION = "_9999.html"
"""What is put behind the name of a file that exists, and of a page beside it."""


def _refused(field: str, kind: str, path: str, reason: str) -> SettingError:
    return SettingError(
        f"{field}: {shown(path)} cannot be written ({reason}); name a {kind} that can"
    )


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, UnicodeError):
        return "its name is no text"
    if isinstance(error, ValueError):  # a NUL
        return "its name holds a sign that no name may hold"
    if error.errno in (errno.EEXIST, errno.ENOTDIR):
        return "a file is in its way"
    return error.strerror or str(error)


@contextlib.contextmanager
def _made(folder: Path) -> Iterator[None]:
    """Make a folder with those above it for a while."""
    missing = []
    for each in (folder, *folder.parents):
        if os.path.lexists(each):
            break
        missing.append(each)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        for each in missing:
            # It is gone, or another process has written to it in the meantime.
            with contextlib.suppress(OSError):
                each.rmdir()


def _try_file(folder: Path, suffix: str = "") -> None:
    with tempfile.NamedTemporaryFile(dir=folder, suffix=suffix):
        pass


def check_folder(field: str, path: str) -> None:
    """Refuse a folder into which no file can be written.

    Raises:
        SettingError: The field, the folder and the reason.
    """
    try:
        folder = Path(path)
        with _made(folder):
            _try_file(folder)
    except (OSError, ValueError) as error:
        raise _refused(field, "folder", path, _reason(error)) from error


def check_file(field: str, path: str, *, is_kept: bool = False) -> None:
    """Refuse a file that cannot be written, or is none.

    Args:
        field: The setting.
        path: The file.
        is_kept: Whether a file that is there is kept, and one beside it written.

    Raises:
        SettingError: The field, the file and the reason.
    """
    try:
        file = Path(path)
        # "." and "data/" are folders, whether they are there or not.
        if file.is_dir() or not file.name or path.endswith(("/", "/.", "/..")):
            raise _refused(field, "file", path, "it is a folder")
        if file.exists() and not file.is_file():
            if is_kept or not os.access(file, os.W_OK):
                raise _refused(field, "file", path, "it is no ordinary file")
            return
        with _made(file.parent):
            if file.exists() and not is_kept:
                with file.open("ab"):
                    return
            _try_file(file.parent)
            longest = file.parent / f"{file.name}{LONGEST_ADDITION}"
            longest.touch()
            longest.unlink()
    except SettingError:
        raise
    except (OSError, ValueError) as error:
        raise _refused(field, "file", path, _reason(error)) from error
