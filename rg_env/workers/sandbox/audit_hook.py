"""Denials in Python, for kernels that lack Landlock or seccomp.

An audit hook sees what Python code asks of the system, not what C code does, and a
job that means harm can get around it through ctypes or a folder's descriptor. So it
is put on only where a layer of the kernel is missing. It cannot be taken off.
"""

from __future__ import annotations

import os
import sys
from typing import Any

_DENIED = frozenset(
    (
        *("os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn"),
        *("_thread.start_new_thread", "os.startfile", "os.system", "pty.spawn"),
        *("subprocess.Popen", "os.killpg", "resource.prlimit", "resource.setrlimit"),
        *("os.chmod", "os.chown", "os.removexattr", "os.setxattr", "os.truncate"),
        *("os.utime", "socket.__new__", "socket.bind", "socket.connect"),
        *("socket.getaddrinfo", "socket.gethostbyaddr", "socket.gethostbyname"),
        *("socket.sendmsg", "socket.sendto", "ctypes.dlopen"),
        *("syslog.openlog", "syslog.syslog"),
    )
)
_WRITTEN = {
    "os.link": (0, 1),
    "os.mkdir": (0,),
    "os.remove": (0,),
    "os.rename": (0, 1),
    "os.rmdir": (0,),
    "os.symlink": (1,),
}
"""Event to the arguments that are paths to write."""

_READ = frozenset({"os.listdir", "os.scandir", "os.walk"})
_EVENTS = _DENIED | _READ | _WRITTEN.keys() | {"open", "os.kill"}
_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def install(readable: tuple[str, ...], writable: tuple[str, ...], pid: int) -> None:
    """Deny processes, threads, network, signals and all other paths, for good.

    Paths are absolute and without links; what can be written can be read as well.
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
    # A descriptor: what it leads to is open already.
    if isinstance(path, int):
        return
    real = os.path.realpath(os.fsdecode("." if path is None else path))
    if not any(real == top or real.startswith(f"{top}/") for top in allowed):
        raise PermissionError(f"{real} is not among the files of a worker")
