"""What a worker gives up before its first job, for good.

Defence in depth: what reaches a scorer has passed a guard that admits no code. Should
some get through, or an item's own code misbehave, this is what it cannot do.

Covered, by layer:
    limits    memory (as the pool is told), 64 open files, 16 MiB a file, an hour of
              CPU time in a worker's life, no core dumps
    landlock  reads outside Python, its packages, this project and the system's
              libraries; writes outside the worker's own scratch folder; programs
    seccomp   processes, threads, programs, sockets, signals to others, tracing, changes
              of modes, owners and times of files, and everything else that is not in
              its table
    audit     where landlock or seccomp is missing: the same of Python code only

Covered elsewhere: state left for the next call (process_state.py); and by whoever
starts the process, an environment without the run's keys, and deadlines, which are the
only limit on the CPU time of a call.

Not covered: what exists, how large it is and who owns it (stat) can be found out
anywhere; how many files a call writes into the scratch folder until its deadline;
modules and builtins that a job changes for the next call of its worker, which
`Trust.max_calls` bounds; a false score between 0 and 1, which a job that runs code in
the worker can always send; faults of the kernel.

A denied call fails with PermissionError; only the limit on CPU time ends the worker. A
layer that the kernel does not have, or does not let us use,
is named with its reason to the pool's owner.
"""

from __future__ import annotations

import functools
import os
import resource
from collections.abc import Callable
from pathlib import Path

from rg_env.workers.sandbox import audit_hook, landlock, seccomp
from rg_env.workers.sandbox.landlock import OWN, READ, Right

# CPU time of a worker's life; it retires between two calls at half of it.
MAX_CPU_S = 3_600

_LIMITS = {
    resource.RLIMIT_CORE: 0,
    resource.RLIMIT_CPU: MAX_CPU_S,
    resource.RLIMIT_FSIZE: 16 * 2**20,
    resource.RLIMIT_NOFILE: 64,
}

UNPROTECTED = {
    "landlock": "files are guarded from Python code only",
    "seccomp": "processes, sockets and signals are guarded from Python code only",
}
"""What it means that a layer is missing."""

has_layers = True  # False, unreported, where workers are to have the limits alone
has_scratch = True  # whether they may write into their scratch folder


def harden(
    folder: Path, readable: tuple[str, ...], memory_limit_bytes: int | None
) -> dict[str, str]:
    """Put every layer that this kernel has on the process. The place for such rules.

    Returns:
        The layers of the kernel that are missing, to the reasons.
    """
    limits = dict(_LIMITS)
    if memory_limit_bytes is not None:
        limits[resource.RLIMIT_AS] = memory_limit_bytes
    for kind, limit in limits.items():
        _, highest = resource.getrlimit(kind)
        if highest != resource.RLIM_INFINITY:
            limit = min(limit, highest)
        resource.setrlimit(kind, (limit, limit))
    rights = dict.fromkeys(readable, READ)
    rights[os.devnull] = READ | Right.WRITE_FILE
    rights[str(folder)] = OWN if has_scratch else READ
    # In this order: the filter of seccomp denies Landlock's system calls.
    steps: dict[str, Callable[[], None]] = {
        "landlock": functools.partial(landlock.restrict, rights),
        "seccomp": functools.partial(seccomp.install, os.getpid()),
    }
    missing = {}
    for layer, apply in steps.items() if has_layers else ():
        try:
            apply()
        except OSError as error:
            missing[layer] = str(error)
    if missing:
        scratch = [os.path.realpath(folder)] if has_scratch else []
        audit_hook.install(readable, (os.devnull, *scratch), os.getpid())
    return missing
