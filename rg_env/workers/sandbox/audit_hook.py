"""Denies operations in Python, for kernels without Landlock or seccomp.

An audit hook sees the operations of Python code, not of C code. A hostile job can
bypass it with ctypes or the descriptor of a folder. So it is installed only if a layer
of the kernel is missing. It cannot be removed.
"""

from __future__ import annotations

import os
import sys
from typing import Any

_DENIED_EVENTS = """
    os.exec os.fork os.forkpty os.posix_spawn os.spawn os.startfile os.system os.killpg
    os.chmod os.chown os.removexattr os.setxattr os.truncate os.utime
    _thread.start_new_thread pty.spawn subprocess.Popen ctypes.dlopen
    resource.prlimit resource.setrlimit syslog.openlog syslog.syslog
    socket.__new__ socket.bind socket.connect socket.sendmsg socket.sendto
    socket.getaddrinfo socket.gethostbyaddr socket.gethostbyname"""
_DENIED = frozenset(_DENIED_EVENTS.split())
_WRITTEN = {
    "os.link": (0, 1),
    "os.mkdir": (0,),
    "os.remove": (0,),
    "os.rename": (0, 1),
    "os.rmdir": (0,),
    "os.symlink": (1,),
}
"""Event to the positions of arguments that are written paths."""

_READ = frozenset({"os.listdir", "os.scandir", "os.walk"})
_EVENTS = _DENIED | _READ | _WRITTEN.keys() | {"open", "os.kill"}
_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def install(readable: tuple[str, ...], writable: tuple[str, ...], pid: int) -> None:
    """Deny processes, threads, network, signals and all other paths, permanently.

    Args:
        readable: Absolute paths without links.
        writable: Absolute paths without links; they are readable, too.
        pid: The only process that may get a signal.
    """
    readable = (*readable, *writable)

    def check(event: str, args: tuple[Any, ...]) -> None:
        if event not in _EVENTS:
            return
        if event == "open":
            path, _, flags = args
            _check_path(path, writable if flags & _WRITE_FLAGS else readable)
        elif event in _DENIED or (event == "os.kill" and args[0] != pid):
            raise PermissionError(f"{event} is denied in a worker")
        elif event in _READ:
            _check_path(args[0], readable)
        elif event in _WRITTEN:
            for index in _WRITTEN[event]:
                _check_path(args[index], writable)

    sys.addaudithook(check)


def _check_path(path: Any, allowed: tuple[str, ...]) -> None:
    # A descriptor of a file that is already open.
    if isinstance(path, int):
        return
    real = os.path.realpath(os.fsdecode("." if path is None else path))
    if not any(real == top or real.startswith(f"{top}/") for top in allowed):
        raise PermissionError(f"{real} is not among the files of a worker")
