"""Checks paths before the work whose results will be written there."""

from __future__ import annotations

import contextlib
import errno
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rg_env import shutdown
from rg_env.errors import SettingError, shown

FindFiles = Callable[[Path], Sequence[Path]]


def check_regular(path: Path) -> None:
    """Raise an `OSError` if a path exists and is not a regular file.

    A pipe without a reader would block forever, and a device may have no end.
    """
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "is not a regular file", str(path))


def check_writable(field: str, path: Path, *, is_folder: bool = False) -> None:
    """Check that a file or a folder could be created, and leave nothing there.

    Raises:
        SettingError: The path cannot be written; the sentence names `field`.
    """
    existing = path
    try:
        while not existing.exists():
            if existing.is_symlink() and (is_folder or existing != path):
                raise OSError(errno.ENOENT, "a link to nothing")
            existing = existing.parent
        if is_folder or existing != path:
            tempfile.TemporaryFile(dir=existing).close()
        else:
            check_regular(path)
            path.open("ab").close()
    except OSError as error:
        raise SettingError(
            f"{shown(str(path))} cannot be written ({error.strerror});"
            " choose another place",
            field,
        ) from error


@contextlib.contextmanager
def new_folder(folder: Path, find_replaced: FindFiles = lambda _: ()) -> Iterator[Path]:
    """Yield a temporary folder, which becomes `folder` at the end, but not on an error.

    Args:
        folder: The new folder.
        find_replaced: Returns the files of an existing folder that are replaced; other
            files stay.

    Raises:
        SettingError: The folder exists and must not be replaced, or cannot be written.
        SystemExit: A signal came.
    """
    is_free = not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
    has_replaced_files = bool(find_replaced(folder))
    if not has_replaced_files and not is_free:
        raise SettingError(
            f"{shown(str(folder))} is there already; choose another folder", "--out"
        )
    # On the same disk, because a rename cannot move a folder to another one.
    parent = folder if has_replaced_files else folder.parent
    check_writable("--out", parent, is_folder=True)
    with shutdown.handling_signals():
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=f".{folder.name}.", dir=parent, ignore_cleanup_errors=True
        ) as work:
            # A subfolder, because only this user can read the temporary folder.
            new = Path(work) / "new"
            new.mkdir()
            yield new
            if old := find_replaced(folder):
                _replace(folder, old, new)
            else:
                new.rename(folder)  # which fails unless `folder` is empty or missing


def _replace(folder: Path, old: Sequence[Path], new: Path) -> None:
    files = list(new.iterdir())
    for file in files:
        file.replace(folder / file.name)
    for file in {*old} - {folder / file.name for file in files}:
        file.unlink()
