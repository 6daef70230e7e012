"""No new process, no network and no access to other processes, from Python or C."""

import os
import re
import socket

import pytest

from rg_env.workers.sandbox import seccomp
from tests.support.worker_attacks import evaluate, execute, fails_with

pytestmark = pytest.mark.processes

C_CALLS = """
    execve 59 221               socket 41 198       connect 42 203      bpf 321 280
    process_vm_writev 311 271   sendmsg 46 211      unshare 272 97      mount 165 40
    rt_sigqueueinfo 129 138     keyctl 250 219      ptrace 101 117
    io_uring_setup 425 425      pidfd_open 434 434  memfd_create 319 279
    setrlimit 160 164
"""
"""System calls that a job may try without Python, with their numbers by machine."""


DENIED = """
os.fork()
os.posix_spawn('/bin/true', ['true'], {})
os.execv('/bin/true', ['true'])
subprocess.run(['true'])
subprocess.Popen(['true'], close_fds=False)
multiprocessing.Process(target=print).start()
socket.socket(socket.AF_INET)
socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
socket.socket(socket.AF_UNIX)
socket.socketpair()
socket.create_connection(('127.0.0.1', 9))
os.kill(owner, 0)
os.kill(os.getppid(), 9)
os.kill(-1, 9)
os.killpg(os.getpgid(owner), 9)
os.pidfd_open(owner)
os.setpriority(os.PRIO_PROCESS, owner, 19)
os.sched_setaffinity(owner, {0})
resource.prlimit(owner, resource.RLIMIT_CPU, (1, 1))
fcntl.fcntl(0, fcntl.F_SETOWN, owner)
os.setpgid(0, os.getpgid(owner))
os.setsid()
"""


@pytest.mark.parametrize("attack", DENIED.strip().splitlines())
def test_processes_and_sockets_cannot_be_made_nor_other_processes_changed(pool, attack):
    imports = "import fcntl, multiprocessing, os, resource, socket, subprocess\n"
    fails_with(pool, "PermissionError", imports + attack, owner=os.getpid())


def test_no_thread_can_be_started(pool):
    source = "import threading; threading.Thread(target=print).start()"
    fails_with(pool, "RuntimeError", source)


@pytest.mark.parametrize("call", re.findall(r"\w+ \d+ \d+", C_CALLS))
def test_c_code_is_denied_as_well(pool, call):
    number = call.split()[1 + seccomp.MACHINES.index(os.uname().machine)]
    source = f"""\
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
assert libc.syscall({number}, 2, 1, 0, 0, 0, 0) == -1
assert ctypes.get_errno() == 1, ctypes.get_errno()
"""
    execute(pool, source)


@pytest.mark.parametrize("function", ["fork", "vfork"])
def test_c_library_cannot_fork(pool, function):
    assert evaluate(pool, f"__import__('ctypes').CDLL(None).{function}()") == -1


def test_channel_to_the_pool_cannot_send_elsewhere(pool, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as canary:
        canary.bind(str(tmp_path / "canary"))
        source = """\
import os, socket
for fd in range(3, 64):
    try: s = socket.socket(fileno=fd)
    except OSError: continue
    try: s.sendto(b'x', path)
    finally: s.detach()
"""
        fails_with(pool, "PermissionError", source, path=canary.getsockname())
