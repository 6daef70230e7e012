"""Seccomp: a filter in the kernel on the system calls of a process.

A list of what is allowed, in syscalls.py, not of what is forbidden: a new way of
doing harm that a later kernel brings is denied without anyone having heard of it.
What is denied fails with EPERM, a PermissionError in Python, and kills nobody. The
library for it needs libseccomp, which a fresh machine does not have.

The filter sees numbers, no paths: files are landlock.py's.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys

from rg_env.workers.sandbox import syscalls

SET_MODE_FILTER = 1
SPEC_ALLOW = 1 << 2

# In the order of `syscalls.MACHINES`.
_AUDIT_ARCHITECTURES = (0xC000003E, 0xC00000B7)

# The instructions of classic BPF, and where in struct seccomp_data they look.
_LOAD = 0x20
_IF_EQUAL = 0x15
_IF_MORE = 0x25
_RETURN = 0x06
_NUMBER = 0
_ARCHITECTURE = 4
_ARGUMENTS = 16

_ALLOW = 0x7FFF0000
_FAIL = 0x00050000

Instruction = bytes


def install(pid: int) -> None:
    """Put the filter on this thread and what it starts, for good.

    Raises:
        OSError: The kernel has no such filters, does not let us use them, or the
            machine is not in the table.
    """
    machine = os.uname().machine
    if machine not in syscalls.MACHINES or sys.maxsize < 2**32:
        raise OSError(errno.ENOSYS, f"no table of system calls for {machine}")
    column = syscalls.MACHINES.index(machine)
    program = build_filter(column, pid)
    code = ctypes.create_string_buffer(b"".join(program))
    header = struct.pack("@HP", len(program), ctypes.addressof(code))
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    # The mitigations that a filter may bring along guard secrets; none are here.
    syscalls.call(syscalls.SECCOMP[column], SET_MODE_FILTER, SPEC_ALLOW, header)


def build_checks(pid: int) -> dict[str, list[Instruction]]:
    """Return the rules of `syscalls.CHECKED` for a process, the busiest first."""
    return {
        # Without an address, on a socket that is connected: the channel to the pool.
        "sendto": _allow_null(4),
        # Is it a terminal, how wide; blocking or not; close on exec; bytes to read.
        "ioctl": _allow_values(1, 0x5401, 0x5413, 0x5421, 0x5450, 0x5451, 0x541B),
        # Duplicate, flags, locks. F_SETOWN and F_SETSIG would signal anyone.
        "fcntl": _allow_values(1, *range(8), 1030),
        # Names of threads.
        "prctl": _allow_values(0, 15, 16),
        # Limits can be read, not set: root may raise its own.
        "prlimit64": _allow_null(2),
        # Nobody but itself: abort() and raise().
        "kill": _allow_values(0, pid),
        "tgkill": _allow_values(0, pid),
    }


def build_filter(column: int, pid: int) -> list[Instruction]:
    """Return the program for a machine, given by its place in `syscalls.MACHINES`."""
    program = [
        # In the 32 bit mode, the same numbers are other system calls.
        _pack(_LOAD, _ARCHITECTURE),
        _pack(_IF_EQUAL, _AUDIT_ARCHITECTURES[column], 1, 0),
        _fail(errno.EPERM),
        _pack(_LOAD, _NUMBER),
    ]
    for name, check in build_checks(pid).items():
        program += _only(syscalls.CHECKED[name][column], check)
    for numbers in syscalls.ALLOWED.values():
        program += _only(numbers[column], [_pack(_RETURN, _ALLOW)])
    # A C library falls back to what it did before when a call does not exist.
    unheard_of = [_fail(errno.ENOSYS)]
    program += _only(syscalls.CHECKED["clone3"][column], unheard_of)
    program += [_pack(_IF_MORE, syscalls.NEWEST, 0, 1), *unheard_of]
    return [*program, _fail(errno.EPERM)]


def _pack(code: int, value: int, if_true: int = 0, if_false: int = 0) -> Instruction:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _fail(number: int) -> Instruction:
    return _pack(_RETURN, _FAIL | number)


def _only(number: int | None, block: list[Instruction]) -> list[Instruction]:
    """Run a block, which returns, for one system call; for none if there is none."""
    if number is None:
        return []
    return [_pack(_IF_EQUAL, number, 0, len(block)), *block]


def _allow_values(argument: int, *values: int) -> list[Instruction]:
    """Allow a call whose argument, counted from 0, has one of these 32 bit values."""
    # The kernel reads only the lower half of these arguments.
    tests = []
    for value in values:
        tests += [_pack(_IF_EQUAL, value, 0, 1), _pack(_RETURN, _ALLOW)]
    return [_load(argument), *tests, _fail(errno.EPERM)]


def _allow_null(argument: int) -> list[Instruction]:
    """Allow a call whose argument is NULL, in all of its 64 bits."""
    return [
        _load(argument),
        _pack(_IF_EQUAL, 0, 0, 3),
        _load(argument, upper_half=True),
        _pack(_IF_EQUAL, 0, 0, 1),
        _pack(_RETURN, _ALLOW),
        _fail(errno.EPERM),
    ]


def _load(argument: int, *, upper_half: bool = False) -> Instruction:
    # Both machines are little-endian: the lower half comes first.
    return _pack(_LOAD, _ARGUMENTS + 8 * argument + 4 * upper_half)
