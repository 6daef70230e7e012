"""A folder that is whole or not there, however a process ends."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rg_env import ending
from rg_env.errors import SettingError, shown


@contextlib.contextmanager
def new_folder(folder: Path, mark: str = "") -> Iterator[Path]:
    """Yield a folder to fill, which is renamed at the end; after an error it is gone.

    A folder that holds a file `mark` may be replaced, "" for none.

    Raises:
        SettingError: Something else is at the place, or nothing can be written there.
        SystemExit: A signal came.
    """
    _refuse_others(folder, mark)
    with ending.undoing(), contextlib.ExitStack() as stack:
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            # Beside its place, since a rename does not lead to another disk.
            near = tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent)
        except OSError as error:
            reason = f"{shown(str(folder))} cannot be written ({error.strerror})"
            raise SettingError(f"--out: {reason}; choose another folder") from error
        stack.callback(shutil.rmtree, near, ignore_errors=True)
        new, old = Path(near) / "new", Path(near) / "old"
        # mkdtemp lets only this user read what it makes.
        new.mkdir()
        yield new
        _refuse_others(folder, mark)  # it was filled for hours, perhaps
        if mark and folder.exists():
            folder.rename(old)
        new.rename(folder)  # replaces an empty folder and nothing else


def _refuse_others(folder: Path, mark: str) -> None:
    is_other = folder.exists() and not (mark and (folder / mark).is_file())
    if is_other and (not folder.is_dir() or any(folder.iterdir())):
        text = f"{shown(str(folder))} is there already; choose another folder"
        raise SettingError(f"--out: {text}")
