"""Checks places before any work is done that will be written there."""

from __future__ import annotations

import contextlib
import errno
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rg_env import shutdown
from rg_env.errors import SettingError, shown

OwnFiles = Callable[[Path], Sequence[Path]]


def check_regular(path: Path) -> None:
    """Raise an `OSError` if a path exists and is not a regular file.

    A pipe without a reader would block forever, and a device may have no end.
    """
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "is no regular file", str(path))


def check_writable(field: str, path: Path, *, is_folder: bool = False) -> None:
    """Check that a file could be created at a place, and leave nothing there.

    Raises:
        SettingError: The place cannot be written; the sentence names `field`.
    """
    there = path
    try:
        while not there.exists():
            if there.is_symlink() and (is_folder or there != path):
                raise OSError(errno.ENOENT, "a link to nothing")
            there = there.parent
        if is_folder or there != path:
            tempfile.TemporaryFile(dir=there).close()
        else:
            check_regular(path)
            path.open("ab").close()
    except OSError as error:
        reason = f"{shown(str(path))} cannot be written ({error.strerror})"
        raise SettingError(f"{reason}; choose another place", field) from error


@contextlib.contextmanager
def new_folder(folder: Path, own_files: OwnFiles = lambda _: ()) -> Iterator[Path]:
    """Yield a temporary folder, which becomes `folder` at the end, but not on an error.

    Args:
        folder: The new folder.
        own_files: Returns the files of an existing folder that are replaced; other
            files stay.

    Raises:
        SettingError: Something else is at the place, or it cannot be written.
        SystemExit: A signal came.
    """
    is_free = not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
    if not (is_own := bool(own_files(folder))) and not is_free:
        reason = f"{shown(str(folder))} is there already; choose another folder"
        raise SettingError(reason, "--out")
    # Beside its place, because a rename cannot move it to another disk.
    near = folder if is_own else folder.parent
    check_writable("--out", near, is_folder=True)
    with shutdown.handling_signals(), contextlib.ExitStack() as stack:
        near.mkdir(parents=True, exist_ok=True)
        work = tempfile.mkdtemp(prefix=f".{folder.name}.", dir=near)
        stack.callback(shutil.rmtree, work, ignore_errors=True)
        new = Path(work) / "new"
        # A subfolder, because only this user could read the one of mkdtemp.
        new.mkdir()
        yield new
        if old := own_files(folder):
            _replace(folder, old, new)
        else:
            new.rename(folder)  # replaces an empty folder and nothing else


def _replace(folder: Path, old: Sequence[Path], new: Path) -> None:
    files = list(new.iterdir())
    for file in files:
        file.replace(folder / file.name)
    for file in {*old} - {folder / file.name for file in files}:
        file.unlink()
