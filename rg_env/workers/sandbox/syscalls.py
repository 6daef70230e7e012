"""Makes system calls that Python has no function for."""

from __future__ import annotations

import ctypes
import os
import signal
from typing import Any

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.syscall.restype = ctypes.c_long

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38


def call(number: int, *args: Any) -> int:
    """Make a system call, or raise OSError; integers must fit a C long."""
    # The upper half of a register would be undefined for a C int.
    wide = [ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args]
    return _check(_LIBC.syscall(ctypes.c_long(number), *wide))


def prctl(option: int, value: int) -> int:
    """Set an attribute of this process, or raise OSError."""
    args = [ctypes.c_ulong(arg) for arg in (value, 0, 0, 0)]
    return _check(_LIBC.prctl(option, *args))


def end_with_parent() -> None:
    """Have the kernel end this process with its parent; call between fork and exec."""
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _check(result: int) -> int:
    if result == -1:
        error_code = ctypes.get_errno()
        raise OSError(error_code, os.strerror(error_code))
    return result
