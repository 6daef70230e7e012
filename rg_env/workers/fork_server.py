"""The caller's side of the fork server: starts it, requests forks, ends all workers.

A fork server that died is replaced at the next fork; its workers die with it. Its
environment has only a few harmless variables, so no key of the run reaches a worker.

A forked child of this process inherits the sockets to the fork server and its workers,
and closes them. Otherwise the fork server would live until the child ends, even after
this process has ended.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rg_env.workers.call import (
    NotStartedError,
    PoolClosedError,
    PreloadError,
    Worker,
    WorkerLostError,
)
from rg_env.workers.fork_server_program import COMMAND, FORK, KILL, Arguments
from rg_env.workers.sandbox import hardening
from rg_env.workers.wire import MAX_REPLY_BYTES, Channel, Frame
from rg_env.workers.worker_program import remove_folder

logger = logging.getLogger(__name__)

START_LIMIT_S = 60.0
END_LIMIT_S = 2.0  # a busy machine takes a second to report why it ends
MAX_REPORT_BYTES = 2**18
SCRATCH_PREFIX = "reasoning-gym-workers-"
_ROOT = Path(__file__).resolve().parents[2]
_PROGRAM = "rg_env.workers.fork_server_program"
_INHERITED_VARIABLES = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "LD_LIBRARY_PATH",
    "PYTHONHOME",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONPYCACHEPREFIX",
)
# Some items and answers depend on the order of sets. A fork server may have only one
# thread when it forks, but numpy's libraries start one per core.
_SET_VARIABLES = {
    "PYTHONHASHSEED": "0",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}

# Held while the other end of a new socket pair is open here, because a child that is
# forked meanwhile would keep that end. An RLock, because the holder itself may fork.
_fork_lock = threading.RLock()
_our_sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()


def _close_in_child() -> None:
    for end in tuple(_our_sockets):
        end.close()
    _fork_lock.release()


os.register_at_fork(
    before=_fork_lock.acquire,
    after_in_parent=_fork_lock.release,
    after_in_child=_close_in_child,
)


@contextlib.contextmanager
def _socket_pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Yield our end of a socket, closed after an error, and theirs, always closed."""
    with _fork_lock:
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            raise WorkerLostError(f"no worker could be started: {error}") from None
        _our_sockets.add(ours)
        with theirs, contextlib.ExitStack() as undo:
            undo.callback(ours.close)
            yield ours, theirs
            undo.pop_all()


class ForkServer:
    """Forks workers from a process that it keeps alive.

    Attributes:
        closed: Whether `close` was called.
        missing_layers: Missing layers of the sandbox to the reasons; None before the
            first worker.
    """

    def __init__(self, preload: Sequence[str], memory_limit_bytes: int | None) -> None:
        self._preload = preload
        self._memory_limit_bytes = memory_limit_bytes
        self.closed = False
        self.missing_layers: Mapping[str, str] | None = None
        self._lock = threading.Lock()
        self._process: _ServerProcess | None = None

    def fork(self) -> Worker:
        """Return a worker that is ready for a call; start the process if needed.

        Raises:
            PreloadError: Preloading failed, or there is no temporary folder.
            NotStartedError: A signal ended the process or the worker; may be retried.
            WorkerLostError: No worker could be started; the message has the reason.
            PoolClosedError: The fork server is closed.
        """
        while True:
            process = self._ensure_process()
            try:
                worker, missing_layers = process.fork()
            except (OSError, EOFError) as error:
                with self._lock:
                    if self._process is process:
                        self._process = None
                process.close()
                # A process that has forked before is replaced; one that never could
                # is at fault itself.
                if not process.has_forked:
                    raise process.start_error(error) from None
            else:
                process.has_forked = True
                self._log_missing(missing_layers)
                return worker

    def close(self) -> None:
        """End the process and its workers; may be called twice."""
        with self._lock:
            self.closed = True
            process = self._process
            self._process = None
        if process is not None:
            process.close()

    def _log_missing(self, missing_layers: Mapping[str, str]) -> None:
        """Log, for the first worker, which layers of the sandbox are missing."""
        with self._lock:
            is_first = self.missing_layers is None
            self.missing_layers = missing_layers
        if not is_first:
            return
        for layer, reason in missing_layers.items():
            logger.warning(
                "worker processes run without %s (%s): %s",
                layer,
                reason,
                hardening.RISKS[layer],
            )

    def _ensure_process(self) -> _ServerProcess:
        with self._lock:
            if self.closed:
                raise PoolClosedError("the pool is closed")
            try:
                self._process = self._process or _ServerProcess(
                    self._preload, self._memory_limit_bytes
                )
            except FileNotFoundError as error:  # no folder for temporary files
                raise PreloadError(type(error).__name__, str(error)) from None
            except OSError as error:
                raise WorkerLostError(f"no worker could be started: {error}") from None
            return self._process


class _ServerProcess:
    """One running fork server program: its process, control socket, scratch folder."""

    def __init__(self, preload: Sequence[str], memory_limit_bytes: int | None) -> None:
        self.has_forked = False
        self._report = b""
        self._lock = threading.Lock()
        self._worker_ids = itertools.count()
        with _socket_pair() as (self._control, theirs), contextlib.ExitStack() as undo:
            self._scratch = Path(tempfile.mkdtemp(prefix=SCRATCH_PREFIX))
            undo.callback(remove_folder, self._scratch)
            # The program changes to the scratch folder, so paths must be absolute.
            paths = [str(Path(path).absolute()) for path in sys.path]
            arguments = Arguments(
                control_fd=theirs.fileno(),
                sys_path=list(dict.fromkeys([*paths, str(_ROOT)])),
                preload=list(preload),
                scratch=str(self._scratch),
                memory_limit_bytes=memory_limit_bytes,
            )
            self._process = _start(arguments)
            undo.pop_all()

    def fork(self) -> tuple[Worker, Mapping[str, str]]:
        """Fork a worker; return it when it is ready, with its missing layers.

        Raises:
            OSError, EOFError: The process is gone or stuck.
        """
        worker_id = next(self._worker_ids)
        with _socket_pair() as (ours, theirs), self._lock:
            command = COMMAND.pack(FORK, worker_id)
            socket.send_fds(self._control, [command], [theirs.fileno()])
        channel = Channel(ours)
        kill = functools.partial(self._kill, worker_id)
        try:
            ready = channel.receive(START_LIMIT_S, MAX_REPLY_BYTES)
            if ready.kind is not Frame.READY:
                raise NotStartedError(f"the new worker {ready.text}")
        except (OSError, EOFError, NotStartedError):
            kill()
            channel.close()
            raise
        # It has run no job yet, so it is trusted.
        pid, missing_layers = json.loads(ready.body)
        return Worker(channel, kill, pid), missing_layers

    def close(self) -> None:
        """End the process and keep its report; idempotent, from any thread."""
        with self._lock:
            if self._control.fileno() < 0:
                return
            # The process ends when it reads this; its report can still be received.
            with contextlib.suppress(OSError):
                self._control.shutdown(socket.SHUT_WR)
            try:
                self._process.wait(END_LIMIT_S)
            except subprocess.TimeoutExpired:
                # For example, an import holds the interpreter lock.
                self._process.kill()
                self._process.wait()
            self._control.settimeout(0)
            with contextlib.suppress(OSError):
                self._report = self._control.recv(MAX_REPORT_BYTES)
            self._control.close()
        remove_folder(self._scratch)

    def start_error(self, error: Exception) -> PreloadError | NotStartedError:
        """Return the error of a closed process that never forked a worker."""
        if self._report:
            return PreloadError(*json.loads(self._report))
        program = "the process that starts workers"
        status = self._process.returncode
        if isinstance(error, TimeoutError):
            return PreloadError("", f"{program} was not done after {START_LIMIT_S:g} s")
        if status < 0:  # a signal may come from elsewhere, so the import may be fine
            name = signal.strsignal(-status)
            return NotStartedError(f"{program} was ended by signal {-status} ({name})")
        return PreloadError("", f"{program} ended with status {status}")

    def _kill(self, worker_id: int) -> None:
        """Request the kill of a worker; without a fork server it is dead already."""
        with contextlib.suppress(OSError), self._lock:
            self._control.sendall(COMMAND.pack(KILL, worker_id))


def _start(arguments: Arguments) -> subprocess.Popen[bytes]:
    names = os.environ.keys() & _INHERITED_VARIABLES
    inherited = {name: os.environ[name] for name in names}
    return subprocess.Popen(
        [sys.executable, "-m", _PROGRAM, json.dumps(dataclasses.asdict(arguments))],
        cwd=_ROOT,  # where `-m` finds the program
        env=inherited | _SET_VARIABLES | {"TMPDIR": arguments.scratch},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=[arguments.control_fd],
        start_new_session=True,
    )
