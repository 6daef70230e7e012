"""The life of one worker process: take a call, run it, answer, take the next.

Runs in a fork of the zygote and returns never. Whatever a job raises becomes a
FAILURE frame; what a job can do beyond raising (hang, exit, crash, take all memory)
is the pool's to notice from outside. Does not restore what a job changes in its
process: module state, random state, working folder.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import resource
import signal
import threading
import traceback
from typing import NoReturn

from rg_env.isolation.wire import MAX_BODY_BYTES, Channel, Frame, pack_result

MAX_MESSAGE_CHARS = 2_000
MAX_DETAIL_CHARS = 8_000
MAX_TRACEBACK_FRAMES = 20
MAX_GROWTH_KIB = 256 * 2**10
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


def serve(
    channel: Channel, zygote_pid: int, memory_limit_bytes: int | None
) -> NoReturn:
    """Answer calls until the pool hangs up or the process is spent."""
    _die_with(zygote_pid)
    harden(memory_limit_bytes)
    start_kib = _peak_kib()
    channel.send(Frame.READY)
    spent = False
    while not spent:
        try:
            _, body = channel.receive()
        except EOFError:
            break
        kind, reply, spent = _run(channel, body)
        channel.send(kind, reply)
        # A fork is cheap; a worker that grew or runs something else is not reused.
        spent = spent or _peak_kib() - start_kib > MAX_GROWTH_KIB
        spent = spent or threading.active_count() > 1
    os._exit(0)


def harden(memory_limit_bytes: int | None) -> None:
    """Give up, for good, what a job does not need. The one place for such rules.

    Args:
        memory_limit_bytes: Address space of the process, the preloaded modules
            included, or None for no limit.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory_limit_bytes is not None:
        resource.setrlimit(resource.RLIMIT_AS, (memory_limit_bytes, memory_limit_bytes))


def _die_with(zygote_pid: int) -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != zygote_pid:
        os._exit(1)


def _peak_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _run(channel: Channel, body: bytes) -> tuple[Frame, bytes, bool]:
    """Run one call; the boundary at which a job's exception becomes text.

    Returns:
        The kind and body of the answer, and whether the process is spent.
    """
    try:
        job, args = pickle.loads(body)  # noqa: S301 - made by the pool
        channel.send(Frame.STARTED)
        result = pack_result(job(*args))
        if len(result) > MAX_BODY_BYTES:
            raise ValueError(f"the result takes {len(result)} bytes")
        return Frame.RESULT, result, False
    except BaseException as error:  # noqa: BLE001 - SystemExit must not pass
        failure = _describe(error)
        return Frame.FAILURE, pack_result(failure), isinstance(error, MemoryError)


def _describe(error: BaseException) -> tuple[str, str, str]:
    """Kind, message and detail of an exception that may itself be hostile."""
    kind = str(type(error).__name__)[:MAX_MESSAGE_CHARS]
    try:
        message = str(error)[:MAX_MESSAGE_CHARS]
        lines = traceback.format_exception(error, limit=MAX_TRACEBACK_FRAMES)
        return kind, message, "".join(lines)[-MAX_DETAIL_CHARS:]
    except BaseException as failure:  # noqa: BLE001 - its __str__ is the job's too
        return kind, "", f"not described: {type(failure).__name__}"
