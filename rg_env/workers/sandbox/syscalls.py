"""System calls: those that a worker may make, by number, and two ways to make one.

seccomp.py makes the filter of the tables. What is not in them is denied, so this is
also the answer to "may a worker do X?":

    ALLOWED   made by Python, its C library and the libraries that make and score
              items; they act on the process itself, on what it has open, or on paths
    CHECKED   allowed with some arguments only, see seccomp.py

Left out on purpose, among others: execve, fork, vfork and clone, so that no
process and no thread can be started; socket, connect, bind, sendmsg
(it passes descriptors); chmod, chown, utime, xattr and truncate, which act on paths
that Landlock does not look at; ptrace, process_vm_*, pidfd_*, rt_sigqueueinfo;
setrlimit; mount, bpf, io_uring, keyctl and the like.

Source: Linux 6.1, arch/x86/entry/syscalls/syscall_64.tbl and
include/uapi/asm-generic/unistd.h.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
from typing import Any

MACHINES = ("x86_64", "aarch64")
"""What `os.uname().machine` says; the order of the columns below."""

# The highest number in those sources; what comes after is unknown to this table.
NEWEST = 450

SECCOMP = (317, 277)


def _read(table: str) -> dict[str, tuple[int, int | None]]:
    """Return name to its number on each machine; "-" in the table is none there."""
    rows = re.findall(r"(\w+) (\d+) (\d+|-)", table)
    return {name: (int(x), None if arm == "-" else int(arm)) for name, x, arm in rows}


ALLOWED = _read(
    """
    what is open already:
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
    paths, which Landlock decides on:
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
    what a process asks about itself:
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

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.syscall.restype = ctypes.c_long

PR_SET_PDEATHSIG = 1
PR_SET_NO_NEW_PRIVS = 38


def call(number: int, *args: Any) -> int:
    """Make a system call, or raise OSError; integers have to fit a C long."""
    # As a C int, the upper half of the register would be undefined.
    wide = [ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args]
    return _check(_LIBC.syscall(ctypes.c_long(number), *wide))


def prctl(option: int, value: int) -> int:
    """Set an attribute of this process, or raise OSError."""
    rest = [ctypes.c_ulong(arg) for arg in (value, 0, 0, 0)]
    return _check(_LIBC.prctl(option, *rest))


def end_with_parent() -> None:
    """Have the kernel end this process with its parent; between fork and exec."""
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _check(result: int) -> int:
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
