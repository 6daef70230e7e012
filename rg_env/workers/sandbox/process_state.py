"""Resets the state of a process, and its scratch folder, between two calls.

Covered: working folder, scratch folder, environment, random numbers of Python and
numpy, decimal context, limits on recursion and on the digits of integers, timers. A
process with many leaked files is ended.
Not covered: modules, builtins, warning filters, signal handlers, standard streams (a
job that calls exit() leaves stdin closed), C libraries.
"""

from __future__ import annotations

import contextlib
import decimal
import os
import random
import signal
import sys
import tempfile
from pathlib import Path

_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
_SEED = 0
_MAX_LEAKED_FILES = 16


class ProcessState:
    """The state of this process at the time of creation.

    Args:
        folder: The scratch folder, which becomes the working folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        os.environ["TMPDIR"] = str(folder)
        # Twice as fast to compare as the decoded environment.
        self._environment = dict(os.environb)
        self._recursion_limit = sys.getrecursionlimit()
        # New in Python 3.10.7.
        self._has_digits = hasattr(sys, "set_int_max_str_digits")
        self._digits = sys.get_int_max_str_digits() if self._has_digits else 0
        self._decimal = decimal.getcontext().copy()
        self._lowest_free = _find_lowest_free()
        self.restore()

    def restore(self) -> bool:
        """Restore everything; return False if that fails."""
        sys.setrecursionlimit(self._recursion_limit)
        if self._has_digits:
            sys.set_int_max_str_digits(self._digits)
        decimal.setcontext(self._decimal.copy())
        for timer in _TIMERS:
            signal.setitimer(timer, 0)
        random.seed(_SEED)
        if (numpy_random := sys.modules.get("numpy.random")) is not None:
            numpy_random.seed(_SEED)
        if os.environb != self._environment:
            os.environb.clear()
            os.environb.update(self._environment)
        # tempfile caches its folder; now it reads TMPDIR again.
        tempfile.tempdir = None
        try:
            if _find_lowest_free() - self._lowest_free > _MAX_LEAKED_FILES:
                return False
            os.chdir(self._folder)
            if any(self._folder.iterdir()):
                empty_folder(self._folder)
            return not any(self._folder.iterdir())
        except OSError:
            return False


def _find_lowest_free() -> int:
    """Return the lowest descriptor that is not in use."""
    descriptor = os.dup(0)
    os.close(descriptor)
    return descriptor


# -- folders that jobs write into ------------------------------------------------------


def empty_folder(folder: Path) -> None:
    """Delete the contents of a folder, as far as possible.

    `shutil.rmtree` recurses, so a thousand nested folders would crash the process that
    cleans up. Here a nested folder is first moved to the top.
    """
    pending = [folder]
    prefix = folder / os.urandom(16).hex()
    count = 0
    while pending:
        current = pending.pop()
        entries: list[Path] = []
        with contextlib.suppress(OSError):
            entries += current.iterdir()
        for path in entries:
            with contextlib.suppress(OSError):
                if path.is_symlink() or not path.is_dir():
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


def remove_folder(folder: Path) -> None:
    """Delete a folder with its contents, as far as possible."""
    empty_folder(folder)
    with contextlib.suppress(OSError):
        folder.rmdir()
