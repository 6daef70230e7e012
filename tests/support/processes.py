"""What a process has started, and which of it is left; a full disk for this one."""

import contextlib
import resource
import time
from pathlib import Path

PATIENCE_S = 60.0


def _parents():
    """Return the processes that run, zombies left out, each with its parent."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                found[int(stat.parent.name)] = int(parent)
    return found


def descendants(pid):
    """Return the processes that a process started, and theirs."""
    parents, found = _parents(), {pid}
    while new := {child for child in parents if parents[child] in found} - found:
        found |= new
    return found - {pid}


def left_alive(pids):
    """Return which processes are still there, after some patience."""
    deadline = time.monotonic() + PATIENCE_S
    while left := sorted(set(pids) & _parents().keys()):
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    return left


@contextlib.contextmanager
def files_end_at(num_bytes):
    """Let the disk be full for every file of this size."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
