"""What a worker gives up before its first job, for good.

Defence in depth: what reaches a scorer has passed a guard that admits no code. Should
some get through, or an item's own code misbehave, this is what it cannot do.

Covered, by layer:
    limits    memory (as the pool is told), 64 open files, 16 MiB a file, an hour of
              CPU time in a worker's life, no core dumps
    landlock  reads outside Python, its packages, this project and the system's
              libraries; writes outside the worker's own scratch folder; programs
    seccomp   processes (threads may be started), programs, sockets, signals to
              others, tracing, changes of modes, owners and times of files, and
              everything else that is not in syscalls.py
    zygote    64 MiB and 5,000 entries in the scratch folder, looked at twice a second
    baseline  state left for the next call, see process_state.py
    nursery   an environment without the run's keys
    pool      deadlines; there is no other limit on the CPU time of a call
    audit     where landlock or seccomp is missing: the same of Python code only

Not covered: what exists, how large it is and who owns it (stat) can be found out
anywhere; files that were unlinked and are still open are bounded only by the limits
above (1 GiB in all); writes in the half second between two looks at the folder;
modules and builtins that a job changes for the next call of its worker; a false
score, which a job that runs code in the worker can always send; faults of the kernel.

A denied call fails with PermissionError; only the limits on CPU time and on the
folder end the worker. A layer that the kernel does not have, or does not let us use,
is named with its reason to the pool's owner.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import resource
from collections.abc import Callable, Mapping
from pathlib import Path

from rg_env.sandbox import audit_hook, landlock, readable_files, seccomp

MAX_CPU_S = 3_600
"""Of a worker's life. The worker retires between two calls at half of it."""

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


@dataclasses.dataclass(frozen=True)
class Hardening:
    """What protects from a worker.

    Attributes:
        layers: The layers that are in force, those of the module that are not
            certain: "limits", "landlock", "seccomp", "audit".
        missing: Layer to why it is not in force.
    """

    layers: tuple[str, ...]
    missing: Mapping[str, str]


def harden(
    folder: Path, readable: tuple[str, ...], memory_limit_bytes: int | None
) -> Hardening:
    """Put every layer that this kernel has on the process. The place for such rules.

    Args:
        folder: The scratch folder.
        readable: See `reach.find_readable`.
        memory_limit_bytes: Address space of the process, the preloaded modules
            included, or None for no limit.
    """
    limits = dict(_LIMITS)
    if memory_limit_bytes is not None:
        limits[resource.RLIMIT_AS] = memory_limit_bytes
    for kind, limit in limits.items():
        _limit(kind, limit)
    rights = readable_files.build_rights(readable, folder)
    layers, missing = ["limits"], {}
    steps: dict[str, Callable[[], None]] = {
        "landlock": functools.partial(landlock.restrict, rights),
        "seccomp": functools.partial(seccomp.install, os.getpid()),
    }
    for name, apply in steps.items():
        try:
            apply()
            layers.append(name)
        except OSError as error:
            missing[name] = str(error)
    if missing:
        audit_hook.install(readable, readable_files.find_writable(folder), os.getpid())
        layers.append("audit")
    return Hardening(tuple(layers), missing)


def _limit(kind: int, limit: int) -> None:
    """Set a limit, or leave one that is lower already."""
    _, highest = resource.getrlimit(kind)
    if highest != resource.RLIM_INFINITY:
        limit = min(limit, highest)
    resource.setrlimit(kind, (limit, limit))
