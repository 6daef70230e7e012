"""The fork server: a program that imports once and forks workers.

fork_server.py starts it as a separate program, because multiprocessing would import the
caller's main script again. It has one thread and runs no job. Its only argument is the
JSON of `Arguments`. Over the control socket it receives commands of five bytes, a
letter and the id of a worker:

    F + the worker's end of a socket    fork a worker that replies on it
    K                                   kill that worker and its process group

When a worker ends, the program reports this on the worker's own socket, after all
frames of the worker, and says whether others killed the worker. If preloading fails, it
reports class name, message and traceback of the exception as JSON on the control
socket. When the control socket closes, all processes end and the scratch folders are
deleted.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

from rg_env.workers import worker_program
from rg_env.workers.sandbox import hardening, landlock, syscalls
from rg_env.workers.wire import Channel, Frame

COMMAND = struct.Struct("!cI")
FORK = b"F"
KILL = b"K"
# Signals that a process causes itself. Others may come from elsewhere, such as SIGKILL
# from a kernel without memory, or SIGBUS from a failed disk.
CRASH_SIGNALS = {
    signal.SIGABRT,
    signal.SIGFPE,
    signal.SIGILL,
    signal.SIGSEGV,
    signal.SIGSYS,
    signal.SIGXCPU,
    signal.SIGXFSZ,
}


@dataclasses.dataclass(frozen=True)
class Arguments:
    """The arguments of the program.

    Attributes:
        control_fd: The descriptor of the control socket.
        preload: Each is "module", "module:function", which is called after the import,
            or "module:function:argument".
        scratch: The folder for the scratch folders of the workers.
    """

    control_fd: int
    sys_path: list[str]
    preload: list[str]
    scratch: str
    memory_limit_bytes: int | None


@dataclasses.dataclass
class _Child:
    """A forked worker that is not reaped yet."""

    pid: int
    stream: socket.socket
    folder: Path

    def kill(self) -> None:
        # The unreaped worker always exists; its group may not, yet or any more.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        os.kill(self.pid, signal.SIGKILL)


class ForkServerProgram:
    """Forks workers and reaps them."""

    def __init__(self, arguments: Arguments, control: socket.socket) -> None:
        self._arguments = arguments
        self._control = control
        self._pid = os.getpid()
        self._children: dict[int, _Child] = {}
        self._readable = landlock.find_readable()
        # Orphans of workers become children of this process.
        syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
        self._preload_children = set(_children())  # that imports have started
        self._wakeup, self._wakeup_end = socket.socketpair()
        self._selector = selectors.DefaultSelector()

    def run(self) -> None:
        """Execute commands until the control socket closes."""
        self._listen_to_children()
        self._selector.register(self._control, selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is not self._control:
                    self._reap()
                elif not self._execute_command():
                    return

    def close(self) -> None:
        """Kill and reap every worker."""
        for child in self._children.values():
            child.kill()
        for child in self._children.values():
            os.waitpid(child.pid, 0)
        self._children.clear()
        self._end_orphans()

    def _listen_to_children(self) -> None:
        for end in (self._wakeup, self._wakeup_end):
            end.setblocking(False)
        # One unread byte wakes the loop, which checks every child.
        signal.set_wakeup_fd(self._wakeup_end.fileno(), warn_on_full_buffer=False)
        # Only signals with a handler are written to the wakeup descriptor.
        signal.signal(signal.SIGCHLD, lambda signum, frame: None)
        self._selector.register(self._wakeup, selectors.EVENT_READ)

    def _execute_command(self) -> bool:
        """Receive and execute a command; return False if the control socket closed."""
        data, fds, _, _ = socket.recv_fds(self._control, COMMAND.size, 1)
        if len(data) < COMMAND.size:
            return False
        command, worker_id = COMMAND.unpack(data)
        if command == FORK:
            self._fork(worker_id, socket.socket(fileno=fds[0]))
        elif worker_id in self._children:
            self._children[worker_id].kill()
        return True

    def _fork(self, worker_id: int, stream: socket.socket) -> None:
        folder = Path(self._arguments.scratch, str(worker_id))
        try:
            pid = os.fork()
        except OSError as error:
            _report_end(stream, Frame.KILLED, f"could not be forked: {error}")
            return
        if pid == 0:
            try:
                self._become_worker(stream, folder)
            finally:
                # The child must not return into the loop of the parent.
                os._exit(1)
        # Parent and child both do this, so that a kill right now reaches the group.
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)
        self._children[worker_id] = _Child(pid, stream, folder)

    def _become_worker(self, stream: socket.socket, folder: Path) -> None:
        os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._selector.close()
        # With the socket of a sibling, the worker could take the sibling's calls.
        siblings = (child.stream for child in self._children.values())
        for other in (self._control, self._wakeup, self._wakeup_end, *siblings):
            other.close()
        folder.mkdir(0o700)
        worker_program.serve(
            Channel(stream),
            server_pid=self._pid,
            folder=folder,
            readable=self._readable,
            memory_limit_bytes=self._arguments.memory_limit_bytes,
        )

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._wakeup.recv(4096):
                pass
        for worker_id, child in list(self._children.items()):
            # WNOWAIT: until a child is reaped, no other process can have its pid.
            options = os.WEXITED | os.WNOHANG | os.WNOWAIT
            end = os.waitid(os.P_PID, child.pid, options)
            if end is None:
                continue
            child.kill()
            os.waitpid(child.pid, 0)
            del self._children[worker_id]
            # Before the folder is deleted, because that may take long.
            _report_end(child.stream, *_describe_end(end))
            worker_program.remove_folder(child.folder)
        self._end_orphans()

    def _end_orphans(self) -> None:
        """End the processes that workers without a sandbox have started."""
        if hardening.has_layers:
            return
        workers = {child.pid for child in self._children.values()}
        while orphans := set(_children()) - workers - self._preload_children:
            for pid in orphans:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)  # its own children come next


def _children() -> Iterator[int]:
    """Yield the process ids of the children of this process."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The name in parentheses may contain anything; state and parent follow it.
            _, parent = path.read_bytes().rpartition(b")")[2].split()[:2]
            if int(parent) == os.getpid():
                yield int(path.parent.name)


def _describe_end(end: os.waitid_result) -> tuple[Frame, str]:
    if end.si_code == os.CLD_EXITED:
        return Frame.ENDED, f"exited with status {end.si_status}"
    name = signal.strsignal(end.si_status)
    frame = Frame.ENDED if end.si_status in CRASH_SIGNALS else Frame.KILLED
    return frame, f"was ended by signal {end.si_status} ({name})"


def _report_end(stream: socket.socket, frame: Frame, text: str) -> None:
    """Send the last frame on a worker's socket; the pool may have closed it."""
    stream.setblocking(False)
    with contextlib.suppress(OSError), stream:
        Channel(stream).send(frame, text.encode(), timeout_s=0)


def _preload(arguments: Arguments, control: socket.socket) -> None:
    try:
        for name in arguments.preload:
            module, *call = name.split(":", 2)
            loaded = importlib.import_module(module)
            if call:
                getattr(loaded, call[0])(*call[1:])
    except BaseException as error:  # noqa: BLE001 - any import may fail in any way
        control.sendall(json.dumps(worker_program.describe(error)).encode())
        sys.exit(1)
    # Garbage collection in a worker would write to shared pages, and so copy them.
    gc.collect()
    gc.freeze()


def main() -> None:
    """Preload, then fork until the control socket closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    arguments = Arguments(**json.loads(sys.argv[1]))
    control = socket.socket(fileno=arguments.control_fd)
    control.set_inheritable(False)
    sys.path[:] = arguments.sys_path
    os.chdir(arguments.scratch)
    try:
        _preload(arguments, control)
        with contextlib.closing(ForkServerProgram(arguments, control)) as program:
            program.run()
    finally:
        os.chdir("/")
        worker_program.remove_folder(Path(arguments.scratch))


if __name__ == "__main__":
    main()
