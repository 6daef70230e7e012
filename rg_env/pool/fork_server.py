"""The caller's side of the zygote: start it when needed, have workers forked, end all.

A zygote that dies is replaced at the next fork; its workers die with it. What is
started here gets an environment of a few harmless variables, so that no key of the
run reaches a worker.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import logging
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from rg_env.pool.fork_server_program import (
    COMMAND,
    FORK,
    KILL,
    MAX_REPORT_CHARS,
    Order,
)
from rg_env.pool.pool_errors import DeadlineExceeded, PoolClosed, WorkerDied
from rg_env.pool.wire import Channel, Frame
from rg_env.sandbox import hardening, scratch_folder
from rg_env.sandbox.hardening import Hardening

logger = logging.getLogger(__name__)

START_LIMIT_S = 60.0
END_LIMIT_S = 0.5
_ROOT = Path(__file__).resolve().parents[2]
_PROGRAM = "rg_env.pool.fork_server_program"
_KEPT_VARIABLES = (
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
# Some items and answers depend on the order of sets, and a zygote has to have one
# thread when it forks, while numpy's libraries start one per core.
_SET_VARIABLES = {
    "PYTHONHASHSEED": "0",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


class NotStarted(Exception):
    """The worker ended before the job began, so the call may go to another one."""


class ForkServer:
    """Forks workers from a zygote that it keeps alive."""

    def __init__(self, preload: Sequence[str], memory_limit_bytes: int | None) -> None:
        self._preload = list(preload)
        self._memory_limit_bytes = memory_limit_bytes
        self._lock = threading.Lock()
        self._zygote: _ServerProcess | None = None
        self.hardening: Hardening | None = None
        self.closed = False

    def start(self) -> None:
        """Start the zygote; one that cannot be started is for `fork` to name."""
        with contextlib.suppress(WorkerDied):
            self._ensure_zygote()

    def fork(self) -> Worker:
        """Return a worker that is ready for a call; starts the zygote if need be.

        Raises:
            WorkerDied: None could be started; the message says why.
            PoolClosed: The nursery is closed.
        """
        while True:
            zygote = self._ensure_zygote()
            try:
                worker = zygote.fork()
            except (OSError, EOFError):
                self._forget(zygote)
                # One that has worked before died of something else than its orders.
                if not zygote.has_worked:
                    raise WorkerDied(
                        f"no worker could be started: {zygote.report}"
                    ) from None
            else:
                zygote.has_worked = True
                self._note(worker.hardening)
                return worker

    def close(self) -> None:
        """End the zygote and with it every worker; may be called twice."""
        with self._lock:
            self.closed = True
            zygote, self._zygote = self._zygote, None
        if zygote is not None:
            zygote.close()

    def _note(self, found: Hardening) -> None:
        """Say once what the kernel does not protect from."""
        with self._lock:
            is_first, self.hardening = self.hardening is None, found
        if is_first:
            for layer, reason in found.missing.items():
                logger.warning(
                    "worker processes run without %s (%s): %s",
                    layer,
                    reason,
                    hardening.UNPROTECTED[layer],
                )

    def _ensure_zygote(self) -> _ServerProcess:
        with self._lock:
            if self.closed:
                raise PoolClosed("the pool is closed")
            try:
                self._zygote = self._zygote or _ServerProcess(
                    self._preload, self._memory_limit_bytes
                )
            except OSError as error:
                raise WorkerDied(f"no worker could be started: {error}") from None
            return self._zygote

    def _forget(self, zygote: _ServerProcess) -> None:
        """Let the next fork start another zygote."""
        with self._lock:
            if self._zygote is zygote:
                self._zygote = None
        zygote.close()


class Worker:
    """A worker process as its one user sees it. Only `kill` is thread-safe.

    Attributes:
        number: Its number with the zygote.
        hardening: What protects from it; known when it is ready.
    """

    hardening: Hardening

    def __init__(self, number: int, channel: Channel, zygote: _ServerProcess) -> None:
        self.number = number
        self._channel = channel
        self._zygote = zygote

    def wait_until_ready(self) -> None:
        """Wait for the end of preloading and forking.

        Raises:
            TimeoutError, EOFError: The zygote is stuck or gone.
            WorkerDied: The zygote lives and the worker does not.
        """
        kind, body = self._channel.receive(START_LIMIT_S)
        if kind is Frame.DEATH:
            raise WorkerDied(f"the new worker {_read_end(body)}")
        # It has run no job yet, so it can be believed.
        said = json.loads(body)
        self.hardening = Hardening(tuple(said["layers"]), said["missing"])

    def ask(self, call: bytes, deadline_s: float) -> tuple[Frame, bytes]:
        """Run one call and return its RESULT or FAILURE.

        Args:
            call: Pickle of (job, args).
            deadline_s: Counted from the moment the job begins in the worker.

        Raises:
            DeadlineExceeded: The job was not done in time; the worker is of no use.
            WorkerDied: The worker ended under the job.
            NotStarted: The worker ended before the job began.
        """
        try:
            self._channel.send(Frame.CALL, call, START_LIMIT_S)
            answer = self._channel.receive(START_LIMIT_S)
        except (OSError, EOFError) as error:
            raise NotStarted from error
        if answer[0] is Frame.DEATH:
            raise NotStarted
        if answer[0] is not Frame.STARTED:
            return answer
        return self._await_answer(deadline_s)

    def kill(self) -> None:
        """End the worker and its process group, whatever it is doing."""
        self._zygote.kill(self.number)

    def close(self) -> None:
        """Kill it and let go of its socket."""
        self.kill()
        self._channel.close()

    def _await_answer(self, deadline_s: float) -> tuple[Frame, bytes]:
        try:
            kind, body = self._channel.receive(deadline_s)
        except TimeoutError:
            raise DeadlineExceeded(f"not done after {deadline_s:g} s") from None
        except EOFError:
            raise WorkerDied("the worker ended without an answer") from None
        if kind is Frame.DEATH:
            raise WorkerDied(f"the worker {_read_end(body)}")
        return kind, body


def _read_end(body: bytes) -> str:
    return body[:MAX_REPORT_CHARS].decode(errors="replace")


class _ServerProcess:
    """One running zygote: its process, control socket and scratch folder."""

    def __init__(self, preload: list[str], memory_limit_bytes: int | None) -> None:
        self.report = ""
        self.has_worked = False
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._control, theirs = socket.socketpair()
        with contextlib.ExitStack() as undo, theirs:
            undo.callback(self._control.close)
            self._scratch = tempfile.mkdtemp(prefix="isolation-")
            undo.callback(scratch_folder.remove, Path(self._scratch))
            order = Order(
                control_fd=theirs.fileno(),
                sys_path=_absolute_sys_path(),
                preload=preload,
                scratch=self._scratch,
                memory_limit_bytes=memory_limit_bytes,
            )
            self._process = _start(order)
            undo.pop_all()

    def fork(self) -> Worker:
        """Have a worker forked and wait until it is ready.

        Raises:
            OSError, EOFError: The zygote is gone or, for START_LIMIT_S, stuck.
            WorkerDied: The zygote lives and the worker does not.
        """
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            raise WorkerDied(f"no worker could be started: {error}") from None
        worker = Worker(next(self._numbers), Channel(ours), self)
        try:
            with theirs, self._lock:
                command = COMMAND.pack(FORK, worker.number)
                socket.send_fds(self._control, [command], [theirs.fileno()])
            worker.wait_until_ready()
        except (OSError, EOFError, WorkerDied):
            worker.close()
            raise
        return worker

    def kill(self, number: int) -> None:
        """Have a worker killed; without a zygote it is dead already."""
        with contextlib.suppress(OSError), self._lock:
            self._control.sendall(COMMAND.pack(KILL, number))

    def close(self) -> None:
        """End the process and fill `report`; may be called twice, from any thread."""
        with self._lock:
            if self._control.fileno() < 0:
                return
            # Says "no more" to the zygote, and what it said can still be read.
            with contextlib.suppress(OSError):
                self._control.shutdown(socket.SHUT_WR)
            try:
                self._process.wait(END_LIMIT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._control.settimeout(0)
            with contextlib.suppress(OSError):
                self.report = self._control.recv(4 * MAX_REPORT_CHARS).decode()
            if not self.report:
                self.report = f"the zygote ended with {self._process.returncode}"
            self._control.close()
        scratch_folder.remove(Path(self._scratch))


def _start(order: Order) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", _PROGRAM, json.dumps(dataclasses.asdict(order))],
        cwd=_ROOT,
        env=_build_environment(order.scratch),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=[order.control_fd],
        start_new_session=True,
    )


def _build_environment(scratch: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    return kept | _SET_VARIABLES | {"TMPDIR": scratch}


def _absolute_sys_path() -> list[str]:
    paths = [str(Path(path).absolute()) for path in sys.path]
    return paths if str(_ROOT) in paths else [*paths, str(_ROOT)]
