"""Restricts a worker process permanently before its first job.

This is defence in depth: guards keep code out of scorers. If some gets through, or the
program of an item misbehaves, these layers restrict it.

Denied, by layer:
    limits    memory above the pool's limit, more than 64 open files, files above 16
              MiB, more than an hour of CPU time of a worker, core dumps
    landlock  reads outside Python, its packages, this project and the system's
              libraries; writes outside the worker's own scratch folder; programs
    seccomp   processes, threads, programs, sockets, signals to others, tracing, changes
              of modes, owners and times of files, and everything else that is not in
              its table

Covered elsewhere: worker_program.py resets state for the next call. fork_server.py
starts the process without the keys of the run. Deadlines limit the CPU time of a call.

Not covered: existence, size and owner of any file (stat); the number of files that a
call writes into the scratch folder; modules and builtins that a job changes for the
next call of its worker (`CallOptions.max_untrusted_calls` bounds these calls); a false
score between 0 and 1, which code in the worker can always send; faults of the kernel.

A denied call fails with PermissionError; only the limit on CPU time ends the worker. If
the kernel lacks a layer or denies its use, the pool warns with the reason.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path

from rg_env.workers.sandbox import landlock, seccomp
from rg_env.workers.sandbox.landlock import READ, READ_WRITE, Right

# CPU time of a worker process; at half of this, the worker ends after a call.
MAX_CPU_S = 3_600

_LIMITS = {
    resource.RLIMIT_CORE: 0,
    resource.RLIMIT_CPU: MAX_CPU_S,
    resource.RLIMIT_FSIZE: 16 * 2**20,
    resource.RLIMIT_NOFILE: 64,
}

RISKS = {
    "landlock": "a job can read and write files",
    "seccomp": "a job can start processes, open sockets and send signals",
}
"""Layer of the kernel to the risk without it."""

# Preloading may change these two in the fork server, for all its workers.
has_layers = True  # False, without a warning, if workers shall only have the limits
has_scratch = True  # whether workers may write into their scratch folder


def harden(
    folder: Path, readable: tuple[str, ...], memory_limit_bytes: int | None
) -> dict[str, str]:
    """Apply every layer that this kernel has to the process.

    Returns:
        Missing layers to the reasons.
    """
    limits = dict(_LIMITS)
    if memory_limit_bytes is not None:
        limits[resource.RLIMIT_AS] = memory_limit_bytes
    for kind, limit in limits.items():
        _, hard_limit = resource.getrlimit(kind)
        if hard_limit != resource.RLIM_INFINITY:
            limit = min(limit, hard_limit)
        resource.setrlimit(kind, (limit, limit))
    if not has_layers:
        return {}
    rights = dict.fromkeys(readable, READ)
    rights[os.devnull] = READ | Right.WRITE_FILE
    rights[str(folder)] = READ_WRITE if has_scratch else READ
    # In this order, because seccomp denies Landlock's system calls.
    steps: dict[str, Callable[[], None]] = {
        "landlock": lambda: landlock.restrict(rights),
        "seccomp": lambda: seccomp.install(os.getpid()),
    }
    missing_layers = {}
    for layer, apply in steps.items():
        try:
            apply()
        except OSError as error:
            missing_layers[layer] = str(error)
    return missing_layers
