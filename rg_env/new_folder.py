"""A folder that is filled under a temporary name and renamed when it is complete."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rg_env import ending
from rg_env.errors import SettingError, shown


@contextlib.contextmanager
def new_folder(folder: Path, mark: str = "", kind: str = "") -> Iterator[Path]:
    """Yield a folder to fill; if an error occurs, nothing of it is left.

    Args:
        folder: Its place.
        mark: A folder that holds this file may be replaced; "" for none.
        kind: What such a folder is.

    Raises:
        SettingError: Something else is at the place, or nothing can be written there.
        StoppedError: A signal came.
    """
    _refuse_others(folder, mark, kind)
    with ending.undoing(), contextlib.ExitStack() as stack:
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            # Beside its place, since a rename does not lead to another disk.
            near = tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent)
        except OSError as error:
            said = f"{shown(str(folder))} cannot be written ({error.strerror})"
            raise SettingError(f"--out: {said}; choose another folder") from error
        stack.callback(shutil.rmtree, near, ignore_errors=True)
        new, old = Path(near) / "new", Path(near) / "old"
        # mkdtemp lets only this user read what it makes.
        new.mkdir()
        yield new
        _refuse_others(folder, mark, kind)  # it was filled for hours, perhaps
        if mark and folder.exists():
            folder.rename(old)
        new.rename(folder)  # replaces an empty folder and nothing else


def _refuse_others(folder: Path, mark: str, kind: str) -> None:
    is_other = folder.exists() and not (mark and (folder / mark).is_file())
    if is_other and (not folder.is_dir() or any(folder.iterdir())):
        found = f"holds something else than {kind}" if kind else "is there already"
        raise SettingError(
            f"--out: {shown(str(folder))} {found}; choose another folder"
        )
