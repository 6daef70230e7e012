"""The files that a worker needs: Python, its packages, this project, the system's.

Made of what the fork server has found and imported, so that an environment, an editable
installation or a submodule is found wherever it lies, and no home folder is opened
because something in it is on the path.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from rg_env.workers.sandbox.landlock import OWN, READ, Right

_ROOT = Path(__file__).resolve().parents[3]
_OF_THE_PROJECT = ("rg_env", "reasoning-gym")
_OF_THE_SYSTEM = (
    # shared libraries
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/etc/ld.so.cache",
    # time zones, languages, fonts
    "/etc/localtime",
    "/usr/share/fonts",
    "/usr/share/i18n",
    "/usr/share/locale",
    "/usr/share/zoneinfo",
    "/usr/local/share/pyfiglet",
    # random numbers
    "/dev/random",
    "/dev/urandom",
)
_SITE_FOLDERS = ("site-packages", "dist-packages")
_NOWHERE = os.devnull


def find_readable() -> tuple[str, ...]:
    """Return the files and folders to read, absolute and without links, sorted.

    Ask when everything is imported that workers share.
    """
    found = {Path(path).resolve() for path in _candidates() if Path(path).exists()}
    found.discard(Path("/"))
    return tuple(sorted(str(path) for path in found if not found & {*path.parents}))


def build_rights(readable: tuple[str, ...], folder: Path) -> dict[str, Right]:
    """Return the rights of a worker whose scratch folder is `folder`."""
    rights = dict.fromkeys(readable, READ)
    return rights | {_NOWHERE: READ | Right.WRITE_FILE, str(folder): OWN}


def find_writable(folder: Path) -> tuple[str, ...]:
    """Return what a worker may write, absolute and without links."""
    return (_NOWHERE, os.path.realpath(folder))


def _candidates() -> Iterator[str]:
    yield from _OF_THE_SYSTEM
    for name in ("stdlib", "platstdlib", "purelib", "platlib"):
        yield sysconfig.get_path(name)
    for prefix in {sys.base_prefix, sys.base_exec_prefix, sys.prefix}:
        yield from (f"{prefix}/lib", f"{prefix}/lib64")
    yield from (str(_ROOT / name) for name in _OF_THE_PROJECT)
    yield from filter(_holds_packages, sys.path)
    for name, module in list(sys.modules.items()):
        if "." not in name and isinstance(module, ModuleType):
            yield from map(str, getattr(module, "__path__", ()))


def _holds_packages(path: str) -> bool:
    """Tell a folder of packages, or a zip file, from one that a script lies in."""
    entry = Path(path)
    return (
        entry.is_file()
        or entry.name in _SITE_FOLDERS
        or _ROOT in entry.resolve().parents
        or any(entry.glob("*.dist-info"))
    )
