"""What a process has started, and which of it is left; a full disk for this one."""

import contextlib
import resource
import time

import psutil

PATIENCE_S = 60.0


def _running():
    """Return the processes that run, zombies left out."""
    processes = psutil.process_iter(["status"])
    return {p.pid for p in processes if p.info["status"] != psutil.STATUS_ZOMBIE}


def descendants(pid):
    """Return the processes that a process started, and theirs."""
    children = psutil.Process(pid).children(recursive=True)
    return {child.pid for child in children} & _running()


def left_alive(pids):
    """Return which processes are still there, after some patience."""
    deadline = time.monotonic() + PATIENCE_S
    while (left := _running().intersection(pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return sorted(left)


@contextlib.contextmanager
def files_end_at(num_bytes):
    """Let the disk be full for every file of this size."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
