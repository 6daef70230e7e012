"""One worker of the pool: the thread that feeds its processes and replaces them."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import pickle
import queue
import threading
import typing
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import msgspec

from rg_env.errors import printable
from rg_env.workers.fork_server import ForkServer
from rg_env.workers.plain_values import unpack
from rg_env.workers.pool_errors import (
    JobError,
    PoolClosedError,
    PoolError,
    WorkerDiedError,
    WorkerLostError,
)
from rg_env.workers.wire import MAX_BODY_BYTES, MAX_REPLY_BYTES, Frame
from rg_env.workers.worker_handle import KilledError, NotStartedError, WorkerHandle
from rg_env.workers.worker_program import MAX_DETAIL_CHARS, MAX_MESSAGE_CHARS

MAX_DEADLINE_S = 86_400.0
MAX_ATTEMPTS = 5
"""Workers that a call gets where others end them."""
MAX_OWN_ENDS = 2
"""Workers that it gets where its job ends them: the first may have been spoilt."""
JOIN_LIMIT_S = 1.0
BRIEF_CALLS = 24
"""A fork and what is loaded again after it take 20 ms of CPU time: by so many groups a
twentieth of what a group takes in all."""


@dataclasses.dataclass(frozen=True)
class Trust:
    """How far the answer of a worker is trusted.

    Attributes:
        max_reply_bytes: Of the answer.
        read: Makes the result of what was answered, which has the type that the job
            is annotated with, in a thread of the pool; raises ValueError if the call
            cannot return that. None takes it as it is.
        brief: Whether the call may take over its worker, which then does no other
            calls and is replaced after BRIEF_CALLS of them.
        prepare: Called in the worker before the job begins and its deadline runs, to
            load and keep what the job needs; pickled. It must not depend on what is
            not to be believed.
    """

    max_reply_bytes: int = MAX_REPLY_BYTES
    read: Callable[[Any], Any] | None = None
    brief: bool = False
    prepare: Callable[[], object] | None = None


BELIEVED = Trust()


@functools.cache
def _returns(job: Callable[..., Any]) -> Any:
    """Return the type that a job is annotated with."""
    return typing.get_type_hints(job).get("return", Any)


class Call:
    """A pickled job, its deadline and its future; knows the worker that runs it."""

    def __init__(
        self,
        job: Callable[..., Any],
        args: tuple[Any, ...],
        deadline_s: float,
        trust: Trust = BELIEVED,
    ) -> None:
        """Check and pickle; raises as `WorkerPool.submit`."""
        self.job = job
        self.trust = trust
        self.kind = (job, trust.brief)
        self.returns = _returns(job)
        if not 0 < deadline_s <= MAX_DEADLINE_S:
            raise ValueError(f"deadline_s={deadline_s} is not in (0, {MAX_DEADLINE_S}]")
        if getattr(job, "__module__", None) == "__main__":
            raise ValueError(f"{job} is of __main__, which workers do not import")
        self.future: Future[Any] = Future()
        self.abandoned = False
        # In the thread of the caller, who gets the error of what does not pickle.
        self._body = pickle.dumps((trust.prepare, job, args), pickle.HIGHEST_PROTOCOL)
        if len(self._body) > MAX_BODY_BYTES:
            raise ValueError(f"the call takes {len(self._body)} bytes")
        self._deadline_s = deadline_s
        self._lock = threading.Lock()
        self._worker: WorkerHandle | None = None

    def run_on(self, worker: WorkerHandle) -> tuple[Frame, bytes]:
        """Run on this worker; raises as `WorkerHandle.run`."""
        # So that `abandon` is either seen here or finds the worker to kill.
        with self._lock:
            if self.abandoned:
                raise WorkerLostError("the caller has left")
            self._worker = worker
        try:
            limit = self.trust.max_reply_bytes
            return worker.run(self._body, self._deadline_s, limit)
        finally:
            with self._lock:
                self._worker = None

    def abandon(self) -> None:
        """Stop the call, because its caller no longer waits for it."""
        if self.future.done() or self.future.cancel():
            return
        with self._lock:
            self.abandoned = True
            if self._worker is not None:
                self._worker.kill()


class _WorkerPlace:
    """Where a worker process stands, forked when it is needed and replaced.

    Attributes:
        calls: That were begun on the worker which stands here.
    """

    def __init__(self, fork_server: ForkServer) -> None:
        self._fork_server = fork_server
        self._worker: WorkerHandle | None = None
        self._was_taken = False
        self.calls = 0

    @property
    def is_vacated(self) -> bool:
        """Whether a worker stood here, and none does now."""
        return self._was_taken and self._worker is None

    def worker(self) -> WorkerHandle:
        """Return the worker, forked if there is none; raises as `ForkServer.fork`."""
        if self._worker is None:
            self._worker = self._fork_server.fork()
            self._was_taken = True
            self.calls = 0
        return self._worker

    def clear(self) -> None:
        """End the worker, if there is one."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.close()


class CallRunner:
    """Runs the calls it is given, one at a time, on worker processes of its own.

    One worker process serves the brief calls and another one all other calls. Each is
    forked for its first call.

    Args:
        next_call: Asked after each call; None sends the thread to wait.
        note_death: Told of each worker that ended under a call, and how.

    Attributes:
        last_kind: Of the call that it was given last.
    """

    def __init__(
        self,
        fork_server: ForkServer,
        next_call: Callable[[CallRunner], Call | None],
        note_death: Callable[[str], None],
    ) -> None:
        self.last_kind: tuple[Callable[..., Any], bool] | None = None
        self._fork_server = fork_server
        self._next_call = next_call
        self._note_death = note_death
        self._usual, self._brief = _WorkerPlace(fork_server), _WorkerPlace(fork_server)
        self._inbox: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
        # A daemon: Python joins all other threads before atexit closes the pool.
        self._thread = threading.Thread(
            target=self._live, name="worker-thread", daemon=True
        )

    def take(self, call: Call) -> None:
        """Serve this call next; for a thread that waits, one caller at a time."""
        self.last_kind = call.kind
        self._inbox.put(call)
        if self._thread.ident is None:
            self._thread.start()

    def close(self) -> None:
        """End the thread, when the fork server is closed."""
        self._inbox.put(None)
        started = self._thread.ident is not None
        # A callback of the last future may be what closes the pool.
        if started and self._thread is not threading.current_thread():
            self._thread.join(JOIN_LIMIT_S)

    def _live(self) -> None:
        while self._serve(self._inbox.get()):
            pass
        self._usual.clear()
        self._brief.clear()

    def _serve(self, call: Call | None) -> bool:
        """Serve this call and those that wait; False if there was none."""
        if call is None:
            return False
        while call is not None:
            if call.future.set_running_or_notify_cancel():
                self._answer(call, self._brief if call.trust.brief else self._usual)
            call = self._next_call(self)
        return True

    def _answer(self, call: Call, place: _WorkerPlace) -> None:
        try:
            result = self._run(call, place)
        except PoolError as error:
            # What was raised in a worker leaves it as it was.
            if not isinstance(error, JobError):
                place.clear()
            # The end of the fork server looks like a loss to the calls under way.
            if isinstance(error, WorkerLostError) and self._fork_server.closed:
                error = PoolClosedError("the pool was closed")
            # The frames of this thread would keep the call alive with its error.
            call.future.set_exception(error.with_traceback(None))
        else:
            call.future.set_result(result)
        if call.trust.brief and place.calls >= BRIEF_CALLS:
            place.clear()
        if place.is_vacated:
            # Before the next call needs it; that call will say if it fails.
            with contextlib.suppress(NotStartedError, WorkerLostError, PoolClosedError):
                place.worker()

    def _run(self, call: Call, place: _WorkerPlace) -> Any:
        """Run it on the worker; where that ends under it, on another.

        Raises:
            WorkerDiedError: The job has ended MAX_OWN_ENDS workers.
            WorkerLostError: Others have ended MAX_ATTEMPTS, or there is none.
        """
        own_ends = 0
        for _ in range(MAX_ATTEMPTS):
            try:
                worker = place.worker()
                place.calls += 1
                result = _read(call, *call.run_on(worker))
            except (NotStartedError, KilledError, WorkerDiedError) as error:
                ended = error
            else:
                # It may have been killed just after its answer.
                if call.abandoned:
                    place.clear()
                return result
            place.clear()
            if call.abandoned or isinstance(ended, NotStartedError):
                continue
            self._note_death(str(ended))
            own_ends += isinstance(ended, WorkerDiedError)
            if own_ends == MAX_OWN_ENDS:
                raise ended
        raise WorkerLostError(f"{MAX_ATTEMPTS} workers ended, the last one so: {ended}")


def _read(call: Call, kind: Frame, body: bytes) -> Any:
    """Turn an answer into a value; the boundary to what a worker made up.

    Raises:
        JobError: The job raised.
        WorkerDiedError: It is not what the call can return.
    """
    try:
        value = unpack(body)
        if kind is Frame.FAILURE:
            name, message, detail = msgspec.convert(value, tuple[str, str, str])
        else:
            result = msgspec.convert(value, call.returns)
            return call.trust.read(result) if call.trust.read else result
    except (TypeError, ValueError) as error:
        reason = printable(str(error)[:MAX_MESSAGE_CHARS], keep="\n")
        raise WorkerDiedError(f"the worker answered what cannot be: {reason}") from None
    raise JobError(
        printable(name[:MAX_MESSAGE_CHARS], keep="\n"),
        printable(message[:MAX_MESSAGE_CHARS], keep="\n"),
        printable(detail[-MAX_DETAIL_CHARS:], keep="\n"),
    )
