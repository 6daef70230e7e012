"""One worker of the pool: the thread that feeds its process and replaces it."""

from __future__ import annotations

import dataclasses
import pickle
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from rg_env.pool.fork_server import ForkServer
from rg_env.pool.pool_errors import JobFailed, PoolClosed, PoolError, WorkerDied
from rg_env.pool.wire import MAX_BODY_BYTES, PROTOCOL, Frame, unpack_result
from rg_env.pool.worker_process import NotStarted, WorkerProcess
from rg_env.pool.worker_program import MAX_DETAIL_CHARS, MAX_MESSAGE_CHARS

MAX_DEADLINE_S = 86_400.0
MAX_ATTEMPTS = 2
JOIN_LIMIT_S = 1.0


@dataclasses.dataclass(frozen=True)
class Trust:
    """How far what a worker answers is believed.

    Attributes:
        max_reply_bytes: Of the pickled answer.
        read: Makes the result of what was answered, in a thread of the pool, and
            raises ValueError if the call cannot return that; None takes it as it is.
    """

    max_reply_bytes: int = MAX_BODY_BYTES
    read: Callable[[Any], Any] | None = None


BELIEVED = Trust()


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
        if not 0 < deadline_s <= MAX_DEADLINE_S:
            raise ValueError(f"deadline_s={deadline_s} is not in (0, {MAX_DEADLINE_S}]")
        if getattr(job, "__module__", None) == "__main__":
            raise ValueError(f"{job} is of __main__, which workers do not import")
        self.future: Future[Any] = Future()
        self.abandoned = False
        self._body = pickle.dumps((job, args), PROTOCOL)
        if len(self._body) > MAX_BODY_BYTES:
            raise ValueError(f"the call takes {len(self._body)} bytes")
        self._deadline_s = deadline_s
        self._lock = threading.Lock()
        self._worker: WorkerProcess | None = None

    def ask(self, worker: WorkerProcess) -> tuple[Frame, bytes]:
        """Run on this worker; raises as `WorkerProcess.ask`."""
        with self._lock:
            if self.abandoned:
                raise WorkerDied("the caller has left")
            self._worker = worker
        try:
            limit = self.trust.max_reply_bytes
            return worker.ask(self._body, self._deadline_s, limit)
        finally:
            with self._lock:
                self._worker = None

    def abandon(self) -> None:
        """See that the call takes no one's time now that its caller has left."""
        if self.future.done() or self.future.cancel():
            return
        with self._lock:
            self.abandoned = True
            if self._worker is not None:
                self._worker.kill()


class WorkerThread:
    """Runs the calls it is given on one worker process, forked at the first of them.

    Args:
        fork_server: Where workers come from.
        next_call: Asked after each call; None sends the thread to wait.

    Attributes:
        last_job: The function that the worker ran last.
        deaths: Calls that were lost with their worker.
    """

    def __init__(
        self,
        fork_server: ForkServer,
        next_call: Callable[[WorkerThread], Call | None],
    ) -> None:
        self.last_job: Callable[..., Any] | None = None
        self.deaths = 0
        self._fork_server = fork_server
        self._next_call = next_call
        self._worker: WorkerProcess | None = None
        self._has_forked = False
        self._inbox: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
        self._thread = threading.Thread(
            target=self._live, name="worker-thread", daemon=True
        )

    def take(self, call: Call) -> None:
        """Serve this call next; for a thread that waits, one caller at a time."""
        self.last_job = call.job
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
        self._drop_worker()

    def _serve(self, call: Call | None) -> bool:
        """Serve this call and those that wait; False if there was none."""
        if call is None:
            return False
        while call is not None:
            if call.future.set_running_or_notify_cancel():
                self._answer(call)
            call = self._next_call(self)
        return True

    def _answer(self, call: Call) -> None:
        try:
            result = self._ask(call)
        except PoolError as error:
            if isinstance(error, WorkerDied) and self._fork_server.closed:
                error = PoolClosed("the pool was closed")
            elif isinstance(error, WorkerDied) and not call.abandoned:
                self.deaths += 1
            # The frames of this thread would keep the call alive with its error.
            call.future.set_exception(error.with_traceback(None))
        else:
            call.future.set_result(result)
        if self._has_forked and self._worker is None:
            self._replace_worker()

    def _ask(self, call: Call) -> Any:
        """Ask the worker; if it turns out to have ended before, ask another."""
        for _ in range(MAX_ATTEMPTS):
            worker = self._ensure_worker()
            try:
                answer = call.ask(worker)
            except NotStarted:
                self._drop_worker()
            except PoolError:
                self._drop_worker()
                raise
            else:
                if call.abandoned:
                    self._drop_worker()
                return self._read(call, *answer)
        raise WorkerDied(f"{MAX_ATTEMPTS} workers ended before the job began")

    def _read(self, call: Call, kind: Frame, body: bytes) -> Any:
        """Turn an answer into a value; the boundary to what a worker made up."""
        try:
            value = unpack_result(body)
            if kind is Frame.FAILURE:
                name, message, detail = map(str, value)
        except Exception as error:  # noqa: BLE001 - hostile bytes raise any kind
            self._drop_worker()
            reason = str(error)[:MAX_MESSAGE_CHARS]
            raise JobFailed("UnreadableResult", reason) from None
        if kind is not Frame.FAILURE:
            return self._believed(call, value)
        raise JobFailed(
            name[:MAX_MESSAGE_CHARS],
            message[:MAX_MESSAGE_CHARS],
            detail[-MAX_DETAIL_CHARS:],
        )

    def _believed(self, call: Call, value: Any) -> Any:
        if call.trust.read is None:
            return value
        try:
            return call.trust.read(value)
        except ValueError as error:
            self._drop_worker()
            raise WorkerDied(f"the worker answered what cannot be: {error}") from None

    def _ensure_worker(self) -> WorkerProcess:
        if self._worker is None:
            self._worker = self._fork_server.fork()
            self._has_forked = True
        return self._worker

    def _replace_worker(self) -> None:
        """Fork before the next call needs it; that call will say if it fails."""
        try:
            self._ensure_worker()
        except (WorkerDied, PoolClosed):
            return

    def _drop_worker(self) -> None:
        if self._worker is not None:
            self._worker.close()
            self._worker = None
