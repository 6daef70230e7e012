"""The loop of one worker process: receive a call, run it, reply, repeat.

It runs in a fork of the fork server and never returns. Any exception of a job becomes a
FAILURE frame. The pool notices from outside if a job hangs, exits, crashes or takes all
memory. hardening.py restricts the process, and lists what that does not cover.

Reset between two calls: working folder, scratch folder, environment, random numbers of
Python and numpy, decimal context, limits on recursion and on the digits of integers,
timers. A process that leaks many files, grows, keeps a thread or nears its limit of CPU
time is not reused.
Not reset: modules, builtins, warning filters, signal handlers, standard streams (a job
that calls exit() leaves stdin closed), C libraries.
"""

from __future__ import annotations

import contextlib
import decimal
import json
import os
import pickle
import random
import resource
import signal
import sys
import tempfile
import threading
import traceback
from pathlib import Path
from typing import NoReturn

from rg_env.workers.sandbox import syscalls
from rg_env.workers.sandbox.hardening import MAX_CPU_S, harden
from rg_env.workers.wire import Channel, Frame, Message, pack

MAX_MESSAGE_CHARS = 2_000
MAX_DETAIL_CHARS = 8_000
MAX_TRACEBACK_FRAMES = 20
MAX_GROWTH_KIB = 256 * 2**10
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
_SEED = 0
_MAX_LEAKED_FILES = 16


def serve(
    channel: Channel,
    server_pid: int,
    folder: Path,
    readable: tuple[str, ...],
    memory_limit_bytes: int | None,
) -> NoReturn:
    """Run calls until the pool closes the channel or the process is used up."""
    # Before `harden`, because its seccomp filter denies this call.
    _die_with(server_pid)
    state = _ProcessState(folder)
    # A worker could not write bytecode, and would try at each import.
    sys.dont_write_bytecode = True
    missing_layers = harden(folder, readable, memory_limit_bytes)
    channel.send(Frame.READY, json.dumps([os.getpid(), missing_layers]).encode())
    while True:
        try:
            call = channel.receive()
        except EOFError:
            break
        kind, reply, is_used_up = _run(channel, call)
        channel.send(kind, reply, call_id=call.call_id)
        if is_used_up or not state.restore():
            break
    os._exit(0)


def _die_with(server_pid: int) -> None:
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    # If the server ended before the line above, no signal comes.
    if os.getppid() != server_pid:
        os._exit(1)


def _run(channel: Channel, call: Message) -> tuple[Frame, bytes, bool]:
    """Run one call, and turn an exception of its job into text.

    Returns:
        The kind and body of the reply, and whether the process is used up.
    """
    try:
        payload = pickle.loads(call.body)  # noqa: S301 - made by the pool
        prepare, job, args, max_bytes = payload
        if prepare is not None:
            prepare()
        channel.send(Frame.STARTED, call_id=call.call_id)
        result = pack(job(*args))
        if len(result) > max_bytes:
            raise ValueError(f"the result takes {len(result)} bytes")
        return Frame.RESULT, result, False
    except BaseException as error:  # noqa: BLE001 - SystemExit must not pass
        failure = describe(error)
        return Frame.FAILURE, pack(failure), isinstance(error, MemoryError)


def describe(error: BaseException) -> tuple[str, str, str]:
    """Return class name, message and traceback of an exception, which may be hostile.

    Example:
        >>> describe(ValueError("no answer"))[:2]
        ('ValueError', 'no answer')
    """
    class_name = str(type(error).__name__)[:MAX_MESSAGE_CHARS]
    try:
        message = str(error)[:MAX_MESSAGE_CHARS]
        lines = traceback.format_exception(error, limit=MAX_TRACEBACK_FRAMES)
        return class_name, message, "".join(lines)[-MAX_DETAIL_CHARS:]
    except BaseException as failure:  # noqa: BLE001 - its __str__ may be the job's
        return class_name, "", f"not described: {type(failure).__name__}"


# -- the reset between two calls -------------------------------------------------------


class _ProcessState:
    """The state of this process at the time of creation.

    Args:
        folder: The scratch folder, which becomes the working folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._start_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        os.environ["TMPDIR"] = str(folder)
        # Twice as fast to compare as the decoded environment.
        self._environment = dict(os.environb)
        self._recursion_limit = sys.getrecursionlimit()
        # New in Python 3.10.7.
        self._has_digit_limit = hasattr(sys, "set_int_max_str_digits")
        self._digit_limit = sys.get_int_max_str_digits() if self._has_digit_limit else 0
        self._decimal_context = decimal.getcontext().copy()
        self._lowest_free = _find_lowest_free()
        self.restore()

    def restore(self) -> bool:
        """Restore everything; return False if that fails or the process is used up."""
        usage = resource.getrusage(resource.RUSAGE_SELF)
        # A fork is cheap, so a worker that grew or runs a thread is not reused.
        if (
            usage.ru_maxrss - self._start_kib > MAX_GROWTH_KIB
            or threading.active_count() > 1  # its CPU time would be the next call's
            or usage.ru_utime + usage.ru_stime > MAX_CPU_S / 2
        ):
            return False
        sys.setrecursionlimit(self._recursion_limit)
        if self._has_digit_limit:
            sys.set_int_max_str_digits(self._digit_limit)
        decimal.setcontext(self._decimal_context.copy())
        for timer in _TIMERS:
            signal.setitimer(timer, 0)
        random.seed(_SEED)
        if (numpy_random := sys.modules.get("numpy.random")) is not None:
            numpy_random.seed(_SEED)
        if os.environb != self._environment:
            os.environb.clear()
            os.environb.update(self._environment)
        # tempfile caches its folder; without it, TMPDIR is read again.
        tempfile.tempdir = None
        try:
            if _find_lowest_free() - self._lowest_free > _MAX_LEAKED_FILES:
                return False
            os.chdir(self._folder)
            if any(self._folder.iterdir()):
                _empty_folder(self._folder)
            return not any(self._folder.iterdir())
        except OSError:
            return False


def _find_lowest_free() -> int:
    """Return the lowest descriptor that is not in use."""
    descriptor = os.dup(0)
    os.close(descriptor)
    return descriptor


# -- scratch folders -------------------------------------------------------------------


def _empty_folder(folder: Path) -> None:
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
    _empty_folder(folder)
    with contextlib.suppress(OSError):
        folder.rmdir()
