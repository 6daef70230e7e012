"""Filters the system calls of a process with seccomp.

The tables list allowed calls, so a harmful call of a later kernel is denied, too. A
denied call fails with EPERM, a PermissionError in Python, and does not end the process.
clone3 and calls that are newer than the tables fail with ENOSYS instead. No library is
used, because that would need libseccomp, which a fresh machine does not have.

The filter sees numbers and no paths; landlock.py restricts files. There are two tables:

    ALLOWED   calls of Python, its C library and the libraries that make and score
              items; they act on the process itself, on its open files, or on paths
    CHECKED   allowed only with certain arguments; clone3 is never allowed

Not allowed are, among others: execve, fork, vfork and clone, so no process and no
thread can be started; socket, connect, bind, sendmsg (it passes descriptors); chmod,
chown, utime, xattr and truncate, which Landlock does not check; ptrace, process_vm_*,
pidfd_*, rt_sigqueueinfo; setrlimit; mount, bpf, io_uring and keyctl.

Source: Linux 6.1, arch/x86/entry/syscalls/syscall_64.tbl and
include/uapi/asm-generic/unistd.h.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import struct
import sys

from rg_env.workers.sandbox import syscalls

MACHINES = ("x86_64", "aarch64")
"""Values of `os.uname().machine`, in the order of the columns below."""

# The highest number in those sources; these tables do not know later calls.
NEWEST = 450

SECCOMP = (317, 277)


def _read(table: str) -> dict[str, tuple[int, int | None]]:
    """Return name to its number on each machine, None for "-"."""
    rows = re.findall(r"(\w+) (\d+) (\d+|-)", table)
    return {
        name: (int(x86), None if arm == "-" else int(arm)) for name, x86, arm in rows
    }


ALLOWED = _read(
    """
    open files:
        read 0 63, write 1 64, readv 19 65, writev 20 66, pread64 17 67,
        pwrite64 18 68, preadv 295 69, pwritev 296 70, preadv2 327 286,
        pwritev2 328 287, lseek 8 62, close 3 57, close_range 436 436, dup 32 23,
        dup2 33 -, dup3 292 24, sendfile 40 71, copy_file_range 326 285, fsync 74 82,
        fdatasync 75 83, ftruncate 77 46, fallocate 285 47, fadvise64 221 223,
        flock 73 32, fstat 5 80, fstatfs 138 44, getdents 78 -, getdents64 217 61,
        pipe 22 -, pipe2 293 59, eventfd2 290 19, poll 7 -, ppoll 271 73, select 23 -,
        pselect6 270 72, epoll_create1 291 20, epoll_ctl 233 21, epoll_wait 232 -,
        epoll_pwait 281 22, recvfrom 45 207, getsockname 51 204, getpeername 52 205,
        getsockopt 55 209
    paths, which Landlock restricts:
        open 2 -, openat 257 56, creat 85 -, stat 4 -, lstat 6 -, newfstatat 262 79,
        statx 332 291, statfs 137 43, access 21 -, faccessat 269 48,
        faccessat2 439 439, readlink 89 -, readlinkat 267 78, getcwd 79 17,
        chdir 80 49, fchdir 81 50, mkdir 83 -, mkdirat 258 34, rmdir 84 -,
        unlink 87 -, unlinkat 263 35, rename 82 -, renameat 264 38, renameat2 316 276,
        link 86 -, linkat 265 37, symlink 88 -, symlinkat 266 36, umask 95 166
    memory:
        brk 12 214, mmap 9 222, munmap 11 215, mprotect 10 226, mremap 25 216,
        madvise 28 233, msync 26 227, mincore 27 232, membarrier 324 283
    threads:
        futex 202 98, futex_waitv 449 449, set_robust_list 273 99,
        set_tid_address 218 96, rseq 334 293, arch_prctl 158 -, sched_yield 24 124,
        sched_getaffinity 204 123, sched_getparam 143 121, sched_getscheduler 145 120,
        getcpu 309 168, gettid 186 178
    signals:
        rt_sigaction 13 134, rt_sigprocmask 14 135, rt_sigreturn 15 139,
        rt_sigpending 127 136, rt_sigtimedwait 128 137, rt_sigsuspend 130 133,
        sigaltstack 131 132, restart_syscall 219 128, pause 34 -, alarm 37 -,
        setitimer 38 103, getitimer 36 102
    time:
        clock_gettime 228 113, clock_getres 229 114, clock_nanosleep 230 115,
        nanosleep 35 101, gettimeofday 96 169, time 201 -, times 100 153
    the process itself:
        exit 60 93, exit_group 231 94, wait4 61 260, waitid 247 95, getpid 39 172,
        getppid 110 173, getpgid 121 155, getpgrp 111 -, getsid 124 156,
        getuid 102 174, geteuid 107 175, getgid 104 176, getegid 108 177,
        getgroups 115 158, getresuid 118 148, getresgid 120 150, getpriority 140 141,
        getrlimit 97 163, getrusage 98 165, sysinfo 99 179, uname 63 160,
        capget 125 90, getrandom 318 278
    """
)

CHECKED = _read(
    "sendto 44 206, ioctl 16 29, fcntl 72 25, prctl 157 167, prlimit64 302 261,"
    " clone3 435 435, kill 62 129, tgkill 234 131"
)

SET_MODE_FILTER = 1
SPEC_ALLOW = 1 << 2

# In the order of `MACHINES`.
_AUDIT_ARCHITECTURES = (0xC000003E, 0xC00000B7)

# The instructions of classic BPF, and their offsets in struct seccomp_data.
_LOAD = 0x20
_IF_EQUAL = 0x15
_IF_GREATER = 0x25
_RETURN = 0x06
_NUMBER = 0
_ARCHITECTURE = 4
_ARGUMENTS = 16

_ALLOW = 0x7FFF0000
_DENY = 0x00050000

Instruction = bytes


def install(pid: int) -> None:
    """Apply the filter to this thread and its children, permanently.

    Raises:
        OSError: The kernel has no such filters or denies their use, or the machine is
            not in the table.
    """
    machine = os.uname().machine
    if machine not in MACHINES or sys.maxsize < 2**32:
        raise OSError(errno.ENOSYS, f"no table of system calls for {machine}")
    column = MACHINES.index(machine)
    program = build_filter(column, pid)
    code = ctypes.create_string_buffer(b"".join(program))
    header = struct.pack("@HP", len(program), ctypes.addressof(code))
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    # Without the slow mitigations that protect secrets; a worker has none.
    syscalls.call(SECCOMP[column], SET_MODE_FILTER, SPEC_ALLOW, header)


def build_checks(pid: int) -> dict[str, list[Instruction]]:
    """Return the rules of `CHECKED` for a process, the most frequent calls first."""
    return {
        # Without an address, so only on a connected socket: the channel to the pool.
        "sendto": _allow_null(4),
        # Terminal queries, blocking mode, close on exec, bytes to read.
        "ioctl": _allow_values(1, 0x5401, 0x5413, 0x5421, 0x5450, 0x5451, 0x541B),
        # Duplicates, flags, locks. F_SETOWN and F_SETSIG could send signals.
        "fcntl": _allow_values(1, *range(8), 1030),
        # Names of threads.
        "prctl": _allow_values(0, 15, 16),
        # Limits can be read, not set, because root may raise them.
        "prlimit64": _allow_null(2),
        # Only signals to itself: abort() and raise().
        "kill": _allow_values(0, pid),
        "tgkill": _allow_values(0, pid),
    }


def build_filter(column: int, pid: int) -> list[Instruction]:
    """Return the program for a machine, by its position in `MACHINES`."""
    program = [
        # In 32 bit mode, the same numbers are other system calls.
        _pack(_LOAD, _ARCHITECTURE),
        _pack(_IF_EQUAL, _AUDIT_ARCHITECTURES[column], 1, 0),
        _deny(errno.EPERM),
        _pack(_LOAD, _NUMBER),
    ]
    for name, check in build_checks(pid).items():
        program += _for_call(CHECKED[name][column], check)
    for numbers in ALLOWED.values():
        program += _for_call(numbers[column], [_pack(_RETURN, _ALLOW)])
    # A C library uses an older call if a call does not exist.
    unknown = [_deny(errno.ENOSYS)]
    program += _for_call(CHECKED["clone3"][column], unknown)
    program += [_pack(_IF_GREATER, NEWEST, 0, 1), *unknown]
    return [*program, _deny(errno.EPERM)]


def _pack(code: int, value: int, if_true: int = 0, if_false: int = 0) -> Instruction:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _deny(error_code: int) -> Instruction:
    return _pack(_RETURN, _DENY | error_code)


def _for_call(number: int | None, block: list[Instruction]) -> list[Instruction]:
    """Return instructions that run a block, which returns, for one system call.

    The machine does not have the call if its number is None.
    """
    if number is None:
        return []
    return [_pack(_IF_EQUAL, number, 0, len(block)), *block]


def _allow_values(argument: int, *values: int) -> list[Instruction]:
    """Allow a call if an argument, counted from 0, has one of these 32 bit values."""
    # The kernel reads only the lower half of these arguments.
    tests = []
    for value in values:
        tests += [_pack(_IF_EQUAL, value, 0, 1), _pack(_RETURN, _ALLOW)]
    return [_load(argument), *tests, _deny(errno.EPERM)]


def _allow_null(argument: int) -> list[Instruction]:
    """Allow a call if an argument is NULL, in all 64 bits."""
    return [
        _load(argument),
        _pack(_IF_EQUAL, 0, 0, 3),
        _load(argument, upper_half=True),
        _pack(_IF_EQUAL, 0, 0, 1),
        _pack(_RETURN, _ALLOW),
        _deny(errno.EPERM),
    ]


def _load(argument: int, *, upper_half: bool = False) -> Instruction:
    # Both machines are little-endian, so the lower half comes first.
    return _pack(_LOAD, _ARGUMENTS + 8 * argument + 4 * upper_half)
