"""The loop of one worker process: receive a call, run it, answer, repeat.

It runs in a fork of the fork server and never returns. Any exception of a job becomes a
FAILURE frame. The pool notices from outside if a job hangs, exits, crashes or takes all
memory. hardening.py restricts the process, and process_state.py resets it between two
calls; both list what they do not cover.
"""

from __future__ import annotations

import json
import os
import pickle
import resource
import signal
import sys
import threading
import traceback
from pathlib import Path
from typing import NoReturn

from rg_env.workers.sandbox import syscalls
from rg_env.workers.sandbox.hardening import MAX_CPU_S, harden
from rg_env.workers.sandbox.process_state import ProcessState
from rg_env.workers.wire import Channel, Frame, pack

MAX_MESSAGE_CHARS = 2_000
MAX_DETAIL_CHARS = 8_000
MAX_TRACEBACK_FRAMES = 20
MAX_GROWTH_KIB = 256 * 2**10


def serve(
    channel: Channel,
    server_pid: int,
    folder: Path,
    readable: tuple[str, ...],
    memory_limit_bytes: int | None,
) -> NoReturn:
    """Answer calls until the pool closes the channel or the process is used up."""
    # Before `harden`, because its seccomp filter denies this call.
    _die_with(server_pid)
    state = ProcessState(folder)
    # A worker could not write bytecode, and would try at each import.
    sys.dont_write_bytecode = True
    missing_layers = harden(folder, readable, memory_limit_bytes)
    start_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    channel.send(Frame.READY, json.dumps([os.getpid(), missing_layers]).encode())
    spent = False
    while not spent:
        try:
            _, number, body = channel.receive()
        except EOFError:
            break
        kind, reply, spent = _run(channel, number, body)
        channel.send(kind, reply, number=number)
        # A fork is cheap, so a worker that grew or runs a thread is not reused.
        spent = spent or _is_spent(start_kib) or not state.restore()
    os._exit(0)


def _die_with(server_pid: int) -> None:
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    # If the server ended before the line above, no signal comes.
    if os.getppid() != server_pid:
        os._exit(1)


def _is_spent(start_kib: int) -> bool:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return (
        usage.ru_maxrss - start_kib > MAX_GROWTH_KIB
        or threading.active_count() > 1  # its CPU time would be the next call's
        or usage.ru_utime + usage.ru_stime > MAX_CPU_S / 2
    )


def _run(channel: Channel, number: int, body: bytes) -> tuple[Frame, bytes, bool]:
    """Run one call, and turn an exception of its job into text.

    Returns:
        The kind and body of the answer, and whether the process is used up.
    """
    try:
        prepare, job, args, max_bytes = pickle.loads(body)  # noqa: S301 - made by the pool
        if prepare is not None:
            prepare()
        channel.send(Frame.STARTED, number=number)
        result = pack(job(*args))
        if len(result) > max_bytes:
            raise ValueError(f"the result takes {len(result)} bytes")
        return Frame.RESULT, result, False
    except BaseException as error:  # noqa: BLE001 - SystemExit must not pass
        failure = describe(error)
        return Frame.FAILURE, pack(failure), isinstance(error, MemoryError)


def describe(error: BaseException) -> tuple[str, str, str]:
    """Return kind, message and detail of an exception, which may be hostile.

    Example:
        >>> describe(ValueError("no answer"))[:2]
        ('ValueError', 'no answer')
    """
    kind = str(type(error).__name__)[:MAX_MESSAGE_CHARS]
    try:
        message = str(error)[:MAX_MESSAGE_CHARS]
        lines = traceback.format_exception(error, limit=MAX_TRACEBACK_FRAMES)
        return kind, message, "".join(lines)[-MAX_DETAIL_CHARS:]
    except BaseException as failure:  # noqa: BLE001 - its __str__ may be the job's
        return kind, "", f"not described: {type(failure).__name__}"
