"""Places that are written to, which are checked before any work."""

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
    """Raise an `OSError` if something that is no regular file has a path.

    A pipe without a reader would block for ever, and a device is never read to its end.
    """
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "is no regular file", str(path))


def check_writable(field: str, path: Path, *, is_folder: bool = False) -> None:
    """Refuse a place at which no file could be made; this leaves nothing there.

    Raises:
        SettingError: The setting `field` names such a place.
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
    """Yield a folder to fill, which is renamed at the end; after an error it is gone.

    `own_files` returns the files in a folder that are replaced; others stay there.

    Raises:
        SettingError: Something else is at the place, or nothing can be written there.
        SystemExit: A signal came.
    """
    is_free = not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
    if not (is_own := bool(own_files(folder))) and not is_free:
        reason = f"{shown(str(folder))} is there already; choose another folder"
        raise SettingError(reason, "--out")
    # Beside its place, since a rename does not lead to another disk.
    near = folder if is_own else folder.parent
    check_writable("--out", near, is_folder=True)
    with shutdown.handling_signals(), contextlib.ExitStack() as stack:
        near.mkdir(parents=True, exist_ok=True)
        work = tempfile.mkdtemp(prefix=f".{folder.name}.", dir=near)
        stack.callback(shutil.rmtree, work, ignore_errors=True)
        new = Path(work) / "new"
        # mkdtemp lets only this user read what it makes.
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
